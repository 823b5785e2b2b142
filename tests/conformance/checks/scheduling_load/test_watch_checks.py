"""Checks of load streams against a small engine that breaks one rule at a time.

What the mutants of the suite break is proven on the reference engine; here it is the waits of the
checks, and what they make of engines that fail before the rule in question can be seen.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any

import grpc
import pytest

from conformance.checks import all_checks
from conformance.checks.probe import Probe, Spending
from conformance.checks.violation import Violation
from conformance.model.case import Case
from conformance.wire.connection import Connection
from conformance.wire.detect import detect
from conformance.wire.hooks import Hooks
from conformance.wire.pace import Pace
from conformance.wire.target import Target
from oe_wire import v1
from tests.conformance.checks.core.engine_stub import verdict
from tests.conformance.checks.scheduling_load.watch_stub import MOST, watched

# Rows that need no hook, no rank and no stalled reader.
ROWS = [
    f"OE-LOAD-{number:03}"
    for number in (*range(20, 38), 39, 41, 42, 44, 45, 48, 49)
    if f"OE-LOAD-{number:03}" in all_checks()
]


@pytest.mark.parametrize("row", ROWS)
def test_right_engine_passes(row: str) -> None:
    """Every row is judged on a right engine, and kept, however slow the machine."""
    assert verdict(row, watched(), slow_factor=3.0) == "pass"


@pytest.mark.parametrize(
    ("row", "rules"),
    [
        ("OE-LOAD-021", {"initial": False}),
        ("OE-LOAD-022", {"eager": True}),
        ("OE-LOAD-034", {"beats": False}),
        ("OE-LOAD-037", {"frozen": True}),
        ("OE-LOAD-041", {"keeps": True}),
        ("OE-LOAD-041", {"contagious": True}),
        ("OE-LOAD-042", {"most": 3}),
        ("OE-LOAD-042", {"most": MOST + 1}),
        ("OE-LOAD-042", {"lifetime": 0.02}),
        ("OE-LOAD-044", {"shared": True}),
        ("OE-LOAD-045", {"stale": True}),
        ("OE-LOAD-049", {"lifetime": 0.2}),
    ],
)
def test_wrong_engine_fails(row: str, rules: dict[str, Any]) -> None:
    """The check of a rule notices that it is broken."""
    assert verdict(row, watched(**rules), slow_factor=0.2) == "fail"


@pytest.mark.parametrize("row", [row for row in ROWS if row != "OE-LOAD-042"])
def test_no_stream_is_no_verdict(row: str) -> None:
    """An engine that refuses every stream is not blamed for what its streams would hold."""
    assert verdict(row, watched(most=0), slow_factor=0.2) == "skip"


@pytest.mark.parametrize("row", ["OE-LOAD-034", "OE-LOAD-036", "OE-LOAD-037", "OE-LOAD-044"])
def test_stream_that_ends_early_is_no_verdict(row: str) -> None:
    """That streams stay open is another row's matter."""
    assert verdict(row, watched(lifetime=0.0)) == "skip"


def test_bounds_in_the_wrong_order() -> None:
    """A default above the ceiling breaks the row about bounds, and no stream is opened for it."""
    engine = watched()
    engine.scope.observability.load.heartbeat_default_ms = 10_000
    assert verdict("OE-LOAD-028", engine) == "fail"
    assert verdict("OE-LOAD-023", engine) == "skip"


def test_long_heartbeats_are_not_waited_for() -> None:
    """A row that needs a heartbeat is not judged where it would take more than ten seconds."""
    engine = watched()
    load = engine.scope.observability.load
    load.heartbeat_floor_ms = load.heartbeat_default_ms = load.heartbeat_ceiling_ms = 60_000
    assert verdict("OE-LOAD-034", engine) == "skip"


def test_many_places_are_not_filled() -> None:
    """Of an engine that allows a thousand streams only the first four are asked for."""
    engine = watched(most=4)
    engine.scope.observability.load.max_watch_streams = 1000
    assert verdict("OE-LOAD-042", engine) == "pass"


@pytest.mark.parametrize("row", ["OE-LOAD-046", "OE-LOAD-047", "OE-LOAD-040"])
def test_rows_without_their_hook_are_not_judged(row: str) -> None:
    """An engine that cannot be made to fail or change shows nothing."""
    assert verdict(row, watched()) == "skip"


@pytest.mark.parametrize(
    ("farewell", "right"),
    [
        (grpc.StatusCode.UNAVAILABLE, True),
        (grpc.StatusCode.OK, False),
        (grpc.StatusCode.CANCELLED, False),
    ],
)
def test_shutdown_is_unavailable(farewell: grpc.StatusCode, right: bool) -> None:
    """Where the engine can be stopped, its streams have to end with UNAVAILABLE."""
    engine = watched(farewell=farewell)
    server, address = engine.serve()
    hooks = Hooks(restart=engine.closing.clear, stop=engine.closing.set)
    check = all_checks()["OE-LOAD-047"]
    try:
        with Connection(Target(address, hooks=hooks)) as connection:
            found = detect(connection, timeout=10, model=None)
            spending = Spending(999, 9999)
            probe = Probe("OE-LOAD-047", connection, found, Pace(), spending, threading.Event())
            case = Case(params={"end": "shutdown"})
            with nullcontext() if right else pytest.raises(Violation, match=farewell.name):
                check.body(probe, case)
            probe.new_case()
    finally:
        engine.closing.set()
        server.stop(None)


def test_a_load_without_time_replays_nothing() -> None:
    """Where the load has no time, nothing tells how old it is."""
    engine = watched()
    reply = engine.replies["OpenEngineObservability/GetLoad"]

    def timeless(request: Any, context: Any) -> v1.LoadInfo:
        load: v1.LoadInfo = reply(request, context)
        load.ClearField("timestamp_unix_nanos")
        return load

    engine.replies["OpenEngineObservability/GetLoad"] = timeless
    assert verdict("OE-LOAD-045", engine) == "skip"
