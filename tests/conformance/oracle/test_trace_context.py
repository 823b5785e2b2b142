"""Trace context values against the W3C grammar."""

from __future__ import annotations

import pytest

from conformance.oracle.trace import Parent, parent_kind, state_parses, values
from conformance.strategies.trace import FUTURE, INVALID, UNPARSABLE_STATES, VALID, VALID_STATE


def test_known_values_are_what_they_are_listed_as() -> None:
    """The tables of the strategies are of the kind that their names say."""
    assert parent_kind(VALID) is Parent.VALID
    assert {parent_kind(value) for value in FUTURE} == {Parent.FUTURE}
    assert {parent_kind(value) for value in INVALID} == {Parent.INVALID}


@pytest.mark.parametrize("value", ["", VALID_STATE, "a=1", "tenant@system=x y", "a=1, b=2,,c=3"])
def test_parsable_states(value: str) -> None:
    """Members with optional spaces and empty members between them."""
    assert state_parses(value)


@pytest.mark.parametrize("value", [*UNPARSABLE_STATES, "a=", "a=b\tc", "1@2=x"])
def test_unparsable_states(value: str) -> None:
    """Wrong letters, repeated keys, too many or too long members."""
    assert not state_parses(value)


def test_values_keep_their_order() -> None:
    """All values of a key, and of no other."""
    metadata = (("tracestate", "a=1"), ("traceparent", VALID), ("tracestate", "b=2"))
    assert values(metadata, "tracestate") == ("a=1", "b=2")
