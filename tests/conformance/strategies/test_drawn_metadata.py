"""Drawn metadata can be sent, and is of the kind that its strategy is named by."""

from __future__ import annotations

from hypothesis import given, settings

from conformance.oracle.metadata import KNOWN_KEYS, PREFIX, PRIORITIES, PRIORITY, malformed
from conformance.oracle.trace import Parent, parent_kind
from conformance.strategies.metadata import (
    MALFORMED,
    TOO_LARGE,
    foreign_keys,
    malformed_decimals,
    repeated_keys,
    routing_keys,
    unknown_keys,
)
from conformance.strategies.trace import future_parents, invalid_parents, states, valid_parents
from conformance.wire.target import legal_metadata
from conformance.wire.transcript import Metadata

drawn = settings(max_examples=60, database=None, derandomize=True)


def test_listed_values_are_malformed() -> None:
    """Each value of the tables is one that a right engine refuses."""
    for value in (*MALFORMED, *TOO_LARGE[PRIORITY]):
        assert malformed(value, PRIORITIES) is True, value


@drawn
@given(
    malformed_decimals(PRIORITY) | repeated_keys() | routing_keys() | unknown_keys(), foreign_keys()
)
def test_metadata_can_be_sent(ours: Metadata, foreign: Metadata) -> None:
    """GRPC carries every key and value."""
    assert legal_metadata((*ours, *foreign))


@drawn
@given(unknown_keys(), foreign_keys(), repeated_keys())
def test_keys_are_whose_they_should_be(
    unknown: Metadata, foreign: Metadata, repeated: Metadata
) -> None:
    """Unknown keys have the prefix, foreign ones have not, repeated ones are known."""
    assert all(key.startswith(PREFIX) and key not in KNOWN_KEYS for key, _ in unknown)
    assert not any(key.startswith(PREFIX) for key, _ in foreign)
    keys = [key for key, _ in repeated if key in KNOWN_KEYS]
    assert len(keys) > len(set(keys)) == 1


@drawn
@given(valid_parents() | future_parents() | invalid_parents() | states())
def test_trace_context_can_be_sent(value: str) -> None:
    """GRPC carries every traceparent and tracestate."""
    assert legal_metadata((("traceparent", value),))


@drawn
@given(valid_parents(), future_parents())
def test_parents_are_of_their_kind(valid: str, future: str) -> None:
    """Also the simplest ones, with which Hypothesis begins: an id of zeros is none."""
    assert parent_kind(valid) is Parent.VALID
    assert parent_kind(future) is Parent.FUTURE
