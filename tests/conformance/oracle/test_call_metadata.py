"""The oracle on call metadata: which values are decimals, which keys count, which rule refuses."""

from __future__ import annotations

import grpc
import pytest

from conformance.oracle import Expectation, expect
from conformance.oracle.metadata import PRIORITIES, RANKS, malformed
from conformance.wire.declared import Declared
from conformance.wire.transcript import Metadata
from oe_wire import v1
from tests.conformance.engines import full, legacy
from tests.conformance.fake_rules import MODEL


def request() -> v1.GenerateRequest:
    return v1.GenerateRequest(
        request_id="id", model=MODEL, prompt="a", stopping=v1.StoppingOptions(max_tokens=1)
    )


def expected(*metadata: tuple[str, str | bytes], declared: Declared | None = None) -> Expectation:
    return expect(request(), metadata, declared or full())


def parallel(size: int, start: int = 0) -> Declared:
    declared = full()
    assert declared.engine_info is not None
    declared.engine_info.parallelism.data_parallel_size = size
    declared.engine_info.parallelism.data_parallel_start_rank = start
    return declared


@pytest.mark.parametrize(
    "value",
    ["", "+1", "1_0", " ", "1 2", "0x1", "1e3", "one", "--1", "1-", "1,1", "2147483648", "9" * 60],
)
def test_malformed_priorities_break_meta_001(value: str) -> None:
    """Anything but an optional minus and digits of 32 bits is refused."""
    expectation = expected(("openengine-priority", value))
    assert expectation.only("OE-CORE-META-001")
    assert expectation.broken["OE-CORE-META-001"] == {grpc.StatusCode.INVALID_ARGUMENT}


@pytest.mark.parametrize("value", ["0", "-1", "7", "2147483647", "-2147483648"])
def test_well_formed_priorities_are_accepted(value: str) -> None:
    """On a profile-aware engine, whether it supports priorities or not."""
    assert expected(("openengine-priority", value)).accepted
    assert not expected(("openengine-priority", value), declared=legacy()).accepted


@pytest.mark.parametrize("value", [" 1", "1 ", "007", "-0", "00"])
def test_open_spellings_are_undecided(value: str) -> None:
    """Spaces that gRPC may strip, and zeros that no rule speaks of."""
    assert malformed(value, PRIORITIES) is None
    expectation = expected(("openengine-priority", value))
    assert not expectation.accepted
    assert not expectation.refused


def test_ranks_take_no_sign_and_32_bits() -> None:
    """A rank is an unsigned 32-bit number."""
    assert malformed("-1", RANKS) is True
    assert malformed("4294967296", RANKS) is True
    assert malformed("4294967295", RANKS) is False


def test_repeated_known_keys_break_meta_002() -> None:
    """Equal values, different ones, and with others in between."""
    for key, value in (("priority", "1"), ("target-dp-rank", "0"), ("routing-key", "a")):
        name = f"openengine-{key}"
        assert expected((name, value), (name, value)).only("OE-CORE-META-002")
    pair = ("openengine-priority", "1")
    assert expected(pair, ("x-other", "1"), ("openengine-priority", "2")).refused
    assert not expected(("openengine-new", "1"), ("openengine-new", "1")).refused


def test_routing_keys_are_opaque_and_not_empty() -> None:
    """META-003; a key of spaces may arrive as an empty one."""
    assert expected(("openengine-routing-key", "")).only("OE-CORE-META-003")
    assert expected(("openengine-routing-key", "any thing: ~!")).accepted
    assert expected(("openengine-routing-key", "  ")).unknown


@pytest.mark.parametrize(
    ("rank", "broken"), [("3", False), ("4", False), ("2", True), ("5", True), ("0", True)]
)
def test_rank_range_begins_at_the_start_rank(rank: str, broken: bool) -> None:
    """Two ranks from 3 on are 3 and 4."""
    expectation = expected(("openengine-target-dp-rank", rank), declared=parallel(2, 3))
    assert expectation.only("OE-CORE-META-004") is broken
    assert expectation.accepted is not broken


def test_unreported_ranks_are_undecided() -> None:
    """Without data_parallel_size nobody knows which ranks there are."""
    expectation = expected(("openengine-target-dp-rank", "0"), declared=parallel(0))
    assert not expectation.accepted
    assert not expectation.refused


def test_session_rank_disagreement_breaks_meta_005() -> None:
    """The rank of the metadata and that of the session must be one."""
    asked = request()
    asked.kv.session.session_id = "s"
    asked.kv.session.dp_rank = 1
    metadata: Metadata = (("openengine-target-dp-rank", "0"),)
    assert "OE-CORE-META-005" in expect(asked, metadata, parallel(2)).broken


def test_unknown_and_foreign_keys_change_nothing() -> None:
    """META-008 and META-009, binary keys included."""
    assert expected(("openengine-x-future", "1"), ("openengine-x-bin", b"\x00")).accepted
    assert expected(("x-twice", "1"), ("x-twice", "2"), ("authorization", "no")).accepted


@pytest.mark.parametrize("pair", [("Openengine-Priority", "1"), ("openengine-priority", "\u0661")])
def test_what_grpc_cannot_carry_is_undecided(pair: tuple[str, str]) -> None:
    """Such a call fails in the client, so the engine is not judged by it."""
    expectation = expected(pair)
    assert not expectation.accepted
    assert not expectation.refused


def test_priority_counts_for_excluded_combinations() -> None:
    """A combination that the engine excludes may name metadata."""
    declared = full()
    assert declared.capabilities is not None
    features = ["metadata.priority", "input.text"]
    declared.capabilities.incompatible.add(features=features)
    assert expected(("openengine-priority", "1"), declared=declared).only("OE-CORE-CAP-019")
