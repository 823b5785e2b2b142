"""What a run needs of an opened target, whichever protocol it speaks."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from conformance.checks.base import AnyProbe
from conformance.checks.check import Check
from conformance.model.registry import Registry
from conformance.runner.baseline import Baseline
from conformance.runner.budget import Budget
from conformance.runner.execute import execute
from conformance.runner.known import known_failure
from conformance.runner.plan import Plan, Row
from conformance.runner.result import CheckResult
from conformance.runtimes.declared import HttpDeclared
from conformance.wire.declared import Declared

# What is known of a target, over gRPC or over HTTP.
AnyDeclared: TypeAlias = Declared | HttpDeclared


class Link(Protocol):
    """A connection of one worker."""

    def cancel_all(self) -> None:
        """End every running call."""

    def close(self) -> None:
        """End it."""


class RunOptions(Protocol):
    """How to judge, whatever the target is; conformance.runner.session.Options explains them."""

    @property
    def budget(self) -> Budget: ...

    @property
    def jobs(self) -> int: ...

    @property
    def baseline(self) -> Baseline | None: ...

    @property
    def slow_factor(self) -> float: ...

    @property
    def time_limit(self) -> float | None: ...


class Opened(Protocol):
    """A target that can be judged. A probe and a check are of the connection's own kind."""

    @property
    def options(self) -> RunOptions: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def address(self) -> str: ...

    @property
    def declared(self) -> Any:
        """What is known of it: AnyDeclared."""

    @property
    def plan(self) -> Plan: ...

    @property
    def seed(self) -> int: ...

    @property
    def stop(self) -> threading.Event: ...

    def connect(self) -> Any:
        """A new connection (a Link); the caller closes it."""

    def probe(self, requirement: str, connection: Any) -> AnyProbe:
        """A probe for one check, with the whole budget of a check to spend."""

    def judge(self, row: Row, check: Check, connection: Any) -> CheckResult:
        """Judge one requirement of the plan."""


def judge_row(session: Opened, row: Row, check: Check, connection: Any) -> CheckResult:
    """Judge one requirement of the plan: by its known failure, when that still shows."""
    budget, baseline = session.options.budget, session.options.baseline
    known = None if baseline is None else baseline.of(row.requirement.id)
    shown_by = None if known is None else checks_of(session.plan).get(known.check)
    if known is not None and shown_by is not None:
        probe = session.probe(shown_by.requirement, connection)
        result = known_failure(known, shown_by, row.requirement, probe, budget)
        if result is not None:
            return result
    probe = session.probe(row.requirement.id, connection)
    return execute(check, row.requirement, probe, budget, session.seed)


def checks_of(plan: Plan) -> Mapping[str, Check]:
    """The checks that a run makes, by requirement."""
    return {row.requirement.id: row.check for row in plan.rows if row.check is not None}
