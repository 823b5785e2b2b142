"""Histories of several requests against a right engine and engines that break one rule each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest

from conformance.checks.core.history import RULES, run_history
from conformance.checks.probe import Probe, Spending
from conformance.checks.violation import NotJudged, Violation
from conformance.laws.law import Finding
from conformance.model.case import Case
from conformance.wire.connection import Connection
from conformance.wire.detect import detect
from conformance.wire.pace import Pace
from conformance.wire.target import Target
from oe_wire import v1
from tests.conformance.checks.core.engine_stub import (
    CHECKS,
    Refusal,
    StubEngine,
    cancelled,
    draw,
    end,
    failure,
    token,
)

FAST = replace(Pace(unary=0.001), slow_factor=0.3)
ALONE = "OE-CORE-ABORT-012"
SHARED = "OE-CORE-ABORT-008"


class Engine(StubEngine):
    """A right engine for ids: duplicates are refused, callers that go are noticed, load is told.

    sticky: aborted ids stay aborted. leaks: aborted requests stay counted. serves_duplicates: a
    second request under an active id is served. forgets: a refused duplicate makes its id unknown
    to Abort.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sticky = self.leaks = self.serves_duplicates = self.forgets = False
        self.aborted_ids: set[str] = set()
        self.lost: set[str] = set()
        self.leaked = 0
        self.lock = threading.Lock()
        self.replies["Inference/Generate"] = self._generate
        self.replies["Control/GetLoad"] = self._load
        self.replies["Control/Abort"] = self._abort

    def _load(self, _request: Any, _context: Any) -> v1.LoadInfo:
        return v1.LoadInfo(running_requests=len(self.active) + self.leaked)

    def _abort(self, request: v1.AbortRequest, _context: Any) -> v1.AbortResponse:
        with self.lock:
            if request.request_id in self.lost:
                request.request_id = "unknown"
            if request.HasField("all_requests"):
                stops = tuple(self.active.values())
                for stop in stops:
                    stop.set()
                aborted = bool(stops)
                return v1.AbortResponse(status=v1.ABORT_STATUS_ABORTED if aborted else 2)
            self.aborted_ids.add(request.request_id)
            return self.abort(request)

    def _generate(self, request: v1.GenerateRequest, context: Any) -> Iterator[Any]:
        request_id = request.request_id
        stop = threading.Event()
        with self.lock:
            if request_id in self.active and not self.serves_duplicates:
                if self.forgets:
                    self.lost.add(request_id)
                raise Refusal(grpc.StatusCode.ALREADY_EXISTS)
            self.lost.discard(request_id)
            self.active[request_id] = stop
        try:
            yield from self._tokens(request, stop, context)
        finally:
            with self.lock:
                self.active.pop(request_id, None)
                self.finished.add(request_id)

    def _tokens(
        self, request: v1.GenerateRequest, stop: threading.Event, context: Any
    ) -> Iterator[v1.GenerateResponse]:
        doomed = self.sticky and request.request_id in self.aborted_ids
        for _step in range(request.stopping.max_tokens):
            if stop.wait(0.002):
                self.leaked += self.leaks
                yield from cancelled(request, {0})
                return
            if not context.is_active():
                return
            yield token(request, 0)
            if doomed:
                yield from cancelled(request, {0})
                return
        yield end(request, 0, v1.FINISH_REASON_LENGTH, last=True)


@contextmanager
def probing(engine: StubEngine, requirement: str) -> Iterator[Probe]:
    server, address = engine.serve()
    try:
        with Connection(Target(address)) as connection:
            declared = detect(connection, timeout=10, model=None)
            spending = Spending(9999, 999_999)
            probe = Probe(requirement, connection, declared, FAST, spending, threading.Event())
            yield probe
            probe.new_case()
    finally:
        engine.closing.set()
        server.stop(None)


def judged(engine: StubEngine, requirement: str, *actions: list[Any]) -> dict[str, str]:
    """Rules that a history was found to break, with what was seen."""
    with probing(engine, requirement) as probe:
        case = Case(params={"actions": list(actions)})
        try:
            run_history(probe, case, alone=requirement == ALONE)
        except Violation as violation:
            return {violation.requirement: violation.actual}
        except NotJudged:
            return broken(probe)
    return {}


def broken(probe: Probe) -> dict[str, str]:
    """What histories found by the way. Rules of single streams are not the stub's strength."""
    return {
        rule: ruling.actual
        for rule, rulings in probe.log.rulings.items()
        for ruling, _ in rulings
        if rule in RULES and isinstance(ruling, Finding)
    }


@pytest.mark.parametrize("requirement", [ALONE, SHARED])
def test_right_engine_keeps_every_rule(requirement: str) -> None:
    """Fifteen drawn histories break nothing and are all judged."""
    engine = Engine()
    check = CHECKS[requirement]
    with probing(engine, requirement) as probe:
        for case in draw(check, probe.declared, 15):
            probe.new_case()
            check.body(probe, case)
            assert broken(probe) == {}


def test_abort_that_sticks_to_the_id_is_found() -> None:
    """A successor of an aborted request is cancelled, though nobody named it."""
    engine = Engine()
    engine.sticky = True
    found = judged(engine, SHARED, ["start", 0], ["abort", 0], ["start", 0], ["start", 1])
    assert found == {SHARED: "CANCELLED"}


def test_leak_is_found_only_where_the_load_may_be_judged() -> None:
    """With the engine for itself the history counts; beside others it does not."""
    actions = (["start", 0], ["start", 1], ["abort", 0])
    for requirement, expected in ((ALONE, {ALONE: "2"}), (SHARED, {})):
        engine = Engine()
        engine.leaks = True
        assert judged(engine, requirement, *actions) == expected


def test_breach_of_another_rule_is_attributed_to_it() -> None:
    """A check reports by the way what breaks a rule that is not its own."""
    engine = Engine()
    engine.serves_duplicates = True
    found = judged(engine, SHARED, ["start", 0], ["start", 0])
    assert list(found) == ["OE-CORE-GEN-003"]


def test_lost_registration_is_blamed_on_the_duplicate() -> None:
    """The first request can no longer be aborted once a duplicate was refused."""
    engine = Engine()
    engine.forgets = True
    found = judged(engine, "OE-CORE-GEN-003", ["start", 0], ["short", 0], ["abort", 0])
    assert found == {"OE-CORE-GEN-003": "NOT_FOUND"}


def test_failing_engine_is_not_blamed_for_aborts() -> None:
    """A request that ends with an EngineError of its own says nothing about other actions."""
    engine = Engine()

    def fails(request: v1.GenerateRequest, _context: Any) -> Iterator[v1.GenerateResponse]:
        yield token(request, 0)
        yield failure(request, v1.ERROR_CODE_OVERLOADED)

    engine.replies["Inference/Generate"] = fails
    assert judged(engine, SHARED, ["start", 0], ["start", 1], ["abort", 1]) == {}
