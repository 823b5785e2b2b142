"""Checks made for a test, and what it takes to run them against a fake engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from conformance.checks.check import Body, Check
from conformance.checks.probe import Probe, Spending
from conformance.model.case import Case
from conformance.model.requirement import Level, Need, Requirement
from conformance.runner.budget import Budget
from conformance.runner.session import Options
from conformance.wire.connection import Connection
from conformance.wire.pace import Pace
from conformance.wire.target import Target, parse_address
from tests.conformance.fake_engine import FakeEngine

BUDGET = Budget("test", examples=20, requests=400, tokens=40_000, shrink_requests=60, replays=3)
ROW = "OE-CORE-GEN-001"


def make_check(
    body: Body,
    *,
    requirement: str = ROW,
    table: Iterable[Case] | None = (Case(),),
    strategy: object = None,
) -> Check:
    """A check with this body; by default one empty case."""
    cases = None if table is None else (lambda _: table)
    drawn = None if strategy is None else (lambda _: strategy)
    return Check(requirement, body, cases, drawn, "mend it", "test.check")


def requirement(
    identifier: str = ROW, level: Level = Level.MUST, needs: frozenset[Need] = frozenset()
) -> Requirement:
    """A requirement of core that always applies."""
    return Requirement(identifier, "core", level, "It holds.", ("D",), needs=needs)


@contextmanager
def probe_for(engine: FakeEngine, check: Check, budget: Budget = BUDGET) -> Iterator[Probe]:
    """A probe on a connection of its own."""
    spending = Spending(budget.requests, budget.tokens)
    with Connection(Target(parse_address(engine.address))) as connection:
        yield Probe(
            check.requirement, connection, engine.declared, Pace(), spending, threading.Event()
        )


def options(engine: FakeEngine, **changes: object) -> Options:
    """Options that judge the fake engine quickly."""
    defaults: dict[str, object] = {"budget": BUDGET, "seed": 1}
    return Options(Target(parse_address(engine.address)), **(defaults | changes))  # type: ignore[arg-type]


def counting(outcomes: Iterable[Callable[[Probe, Case], None]]) -> Body:
    """A body that behaves like the first, second, ... outcome on successive executions."""
    waiting = iter(outcomes)

    def body(probe: Probe, case: Case) -> None:
        next(waiting)(probe, case)

    return body
