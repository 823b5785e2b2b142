"""Runs one check against an engine the way the runner does, without plan, replay or threads."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings

from conformance.checks.check import Check
from conformance.checks.probe import Probe, Spending
from conformance.checks.violation import NotJudged, Tolerated, Violation
from conformance.model.case import Case
from conformance.wire.connection import Connection
from conformance.wire.declared import Declared
from conformance.wire.pace import Pace
from conformance.wire.target import Target
from tests.conformance.fake_engine import FakeEngine

# Quick enough that a check which waits in vain ends a test within a second or two.
FAST = Pace(unary=0.0, first_token=0.0, per_token=0.005, slow_factor=0.25)


@dataclass(slots=True)
class Outcome:
    """held: cases that were judged and kept. skips: why others were not. violation: the first."""

    held: int = 0
    skips: list[str] | None = None
    violation: Violation | None = None
    spent: Spending | None = None
    too_large: bool = False

    @property
    def passed(self) -> bool:
        return self.violation is None and self.held > 0

    @property
    def failed(self) -> bool:
        return self.violation is not None and not isinstance(self.violation, Tolerated)


@contextmanager
def probing(
    engine: FakeEngine, requirement: str, *, address: str = "", pace: Pace = FAST
) -> Iterator[Probe]:
    """A probe on a connection of its own. address: that of a proxy before the engine."""
    with Connection(Target(address or engine.address)) as connection:
        spending = Spending(max_requests=10_000, max_tokens=1_000_000)
        yield Probe(requirement, connection, engine.declared, pace, spending, threading.Event())


def run_check(engine: FakeEngine, check: Check, examples: int = 0) -> Outcome:
    """Every case of the table, then `examples` drawn ones; stops at the first violation."""
    outcome = Outcome(skips=[])
    with probing(engine, check.requirement) as probe:
        for case in _table(check, engine.declared):
            if not _run_case(probe, check, case, outcome):
                break
        else:
            if examples and check.strategy is not None:
                _run_drawn(probe, check, outcome, examples)
        probe.new_case()
        outcome.spent = probe.spending
    return outcome


def _table(check: Check, declared: Declared) -> Iterable[Case]:
    return () if check.table is None else check.table(declared)


def _run_case(probe: Probe, check: Check, case: Case, outcome: Outcome) -> bool:
    probe.new_case()
    try:
        check.body(probe, case)
    except NotJudged as skip:
        if outcome.skips is not None:
            outcome.skips.append(str(skip))
        outcome.too_large = outcome.too_large or skip.too_large
    except Violation as violation:
        outcome.violation = violation
        return False
    else:
        outcome.held += 1
    return True


def _run_drawn(probe: Probe, check: Check, outcome: Outcome, examples: int) -> None:
    strategy = check.strategy
    if strategy is None:
        return

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy(probe.declared))
    def run(case: Case) -> None:
        if outcome.violation is None:
            _run_case(probe, check, case, outcome)

    run()
