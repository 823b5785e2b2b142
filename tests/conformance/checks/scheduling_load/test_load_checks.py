"""Checks of GetLoad on engines that only speak v0.1.0, and on engines that are never at rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from oe_wire import v1
from tests.conformance.checks.core.engine_stub import StubEngine, legacy, refuse, verdict

LOAD = "Control/GetLoad"


def _old(change: Callable[[StubEngine], None] = lambda _: None) -> StubEngine:
    engine = StubEngine()
    legacy(engine)
    change(engine)
    return engine


def _counts(**numbers: int) -> Callable[[StubEngine], None]:
    def change(engine: StubEngine) -> None:
        for name, value in numbers.items():
            setattr(engine.load, name, value)

    return change


def _listing(*ranks: int, unasked: bool = False) -> Callable[[StubEngine], None]:
    """An engine that lists these ranks when it is asked, or always."""

    def reply(request: Any, _context: Any) -> v1.LoadInfo:
        if not (unasked or request.include_per_rank):
            return v1.LoadInfo()
        return v1.LoadInfo(ranks=[v1.RankLoadInfo(data_parallel_rank=rank) for rank in ranks])

    def change(engine: StubEngine) -> None:
        engine.replies[LOAD] = reply

    return change


def _without_load(engine: StubEngine) -> None:
    engine.replies[LOAD] = refuse(grpc.StatusCode.UNIMPLEMENTED)


def _refusing_ranks(engine: StubEngine) -> None:
    def reply(request: Any, context: Any) -> v1.LoadInfo:
        if request.include_per_rank:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no ranks")
        return v1.LoadInfo()

    engine.replies[LOAD] = reply


def _silent(engine: StubEngine) -> None:
    engine.load.ClearField("running_requests")
    engine.load.ClearField("queued_requests")


@pytest.mark.parametrize(
    ("row", "change", "expected"),
    [
        ("OE-LOAD-003", _counts(), "pass"),
        ("OE-LOAD-003", _counts(running_requests=1), "fail"),
        ("OE-LOAD-003", _counts(queued_requests=1), "fail"),
        ("OE-LOAD-003", _silent, "skip"),
        ("OE-LOAD-003", _without_load, "skip"),
        ("OE-LOAD-006", _counts(), "pass"),
        ("OE-LOAD-006", _listing(0, 1), "pass"),
        ("OE-LOAD-006", _listing(1, 0), "fail"),
        ("OE-LOAD-006", _listing(0, unasked=True), "fail"),
        ("OE-LOAD-006", _refusing_ranks, "pass"),
        ("OE-LOAD-006", _without_load, "skip"),
        ("OE-LOAD-008", _counts(), "skip"),
        ("OE-LOAD-008", _counts(used_kv_blocks=2, total_kv_blocks=2), "pass"),
        ("OE-LOAD-008", _counts(used_kv_blocks=3, total_kv_blocks=2), "fail"),
    ],
)
def test_legacy_rows(row: str, change: Callable[[StubEngine], None], expected: str) -> None:
    """On an engine of v0.1.0 the rows are judged by what Control.GetLoad tells."""
    assert verdict(row, _old(change), slow_factor=0.05) == expected


def test_a_refusal_of_ranks_is_no_refusal_of_the_load() -> None:
    """An engine of v0.1.0 that refuses GetLoad without ranks as invalid breaks LOAD-006."""

    def refuses_all(engine: StubEngine) -> None:
        engine.replies[LOAD] = refuse(grpc.StatusCode.INVALID_ARGUMENT)

    assert verdict("OE-LOAD-006", _old(refuses_all)) == "fail"
