"""An opened target: reached, recognised, warmed up and planned. What a run and the plugin share."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from conformance.checks import all_checks
from conformance.checks.check import Check
from conformance.checks.probe import Probe, Spending
from conformance.model.client import ClientSet
from conformance.model.registry import Registry, default_registry
from conformance.runner.baseline import Baseline
from conformance.runner.budget import BUDGETS, Budget
from conformance.runner.opened import judge_row
from conformance.runner.plan import Plan, Row, plan
from conformance.runner.result import CheckResult
from conformance.runner.selection import Selection, validated
from conformance.wire.connection import Connection
from conformance.wire.declared import Declared
from conformance.wire.detect import detect
from conformance.wire.hooks import Hooks
from conformance.wire.pace import Pace
from conformance.wire.routes import routes_of
from conformance.wire.target import Target
from conformance.wire.transcript import Transcript
from conformance.wire.warm_up import warm_up

# Seconds: a call with less than nothing left must still be a call.
_LEAST = 0.01


@dataclass(frozen=True, slots=True)
class Options:
    """How to judge a target.

    model: the model to test, empty = the first one served. dialect: overrides what schema_release
    says. seed: None = a random one, which the report shows. ready_timeout: seconds until the
    target must answer. slow_factor: widens every time limit. time_limit: seconds for the whole
    run, None = none. recorder: told every finished call of a check, from any thread. baseline:
    known deviations, None = none are accepted. clients: whose needs are judged besides.
    """

    target: Target
    model: str = ""
    dialect: str = ""
    budget: Budget = BUDGETS["standard"]
    seed: int | None = None
    jobs: int = 1
    selection: Selection = field(default_factory=Selection)
    ready_timeout: float = 30.0
    slow_factor: float = 1.0
    time_limit: float | None = None
    recorder: Callable[[Transcript], None] = lambda _: None
    baseline: Baseline | None = None
    clients: tuple[ClientSet, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """A target that can be judged. `stop` ends every check that still runs."""

    options: Options
    registry: Registry
    declared: Declared
    pace: Pace
    routes: Mapping[str, str]
    plan: Plan
    seed: int
    stop: threading.Event = field(default_factory=threading.Event)

    def connect(self) -> Connection:
        """A new connection; the caller closes it."""
        return Connection(self.options.target, self.routes)

    def probe(self, requirement: str, connection: Connection) -> Probe:
        """A probe for one check, with the whole budget of a check to spend."""
        budget = self.options.budget
        spending = Spending(budget.requests, budget.tokens)
        return Probe(
            requirement,
            connection,
            self.declared,
            self.pace,
            spending,
            self.stop,
            self.options.recorder,
        )

    def judge(self, row: Row, check: Check, connection: Connection) -> CheckResult:
        """Judge one requirement of the plan: by its known failure, when that still shows."""
        return judge_row(self, row, check, connection)

    @property
    def address(self) -> str:
        """Where the target is, as reports name it."""
        return self.options.target.address


def open_session(
    options: Options,
    registry: Registry | None = None,
    checks: Mapping[str, Check] | None = None,
) -> Session:
    """Reach the target, find out what it is, measure its pace and plan the run.

    Raises ConfigError for a selection or model that does not exist and UnreachableError for a
    target that gives no usable answer in time.
    """
    end = None if options.time_limit is None else time.monotonic() + options.time_limit
    if not options.budget.restarts:
        options = replace(options, target=replace(options.target, hooks=Hooks()))
    registry = default_registry() if registry is None else registry
    checks = all_checks() if checks is None else checks
    selection = validated(options.selection, registry)
    connection = Connection(options.target)
    try:
        declared = detect(
            connection,
            timeout=options.ready_timeout
            if end is None
            else min(options.ready_timeout, _rest(end)),
            model=options.model or None,
            dialect=options.dialect or None,
        )
    finally:
        connection.close()
    if declared.single_service:
        options = replace(options, target=replace(options.target, single_service=True))
    routes = routes_of(declared, options.target)
    connection = Connection(options.target, routes)
    try:
        rest = None if end is None else _rest(end)
        pace, known_tokens = warm_up(connection, declared, options.slow_factor, rest)
    finally:
        connection.close()
    declared = replace(declared, known_tokens=known_tokens)
    return Session(
        options,
        registry,
        declared,
        pace,
        routes,
        plan(registry, checks, declared, selection),
        secrets.randbits(32) if options.seed is None else options.seed,
    )


def _rest(end: float) -> float:
    return max(_LEAST, end - time.monotonic())
