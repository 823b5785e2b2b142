"""An opened HTTP target: reached, identified and planned."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from conformance.checks import http_checks
from conformance.checks.base import Spending
from conformance.checks.check import Check
from conformance.checks.http.probe import HttpProbe
from conformance.errors import ConfigError, UnreachableError, unknown_name
from conformance.http.client import HttpConnection
from conformance.http.exchange import End, Exchange, Request, describe
from conformance.http.limits import DEFAULT, Limits
from conformance.http.target import HttpTarget
from conformance.model.profile import Profile
from conformance.model.registry import Registry
from conformance.model.requirement import Requirement
from conformance.model.status import SkipReason, Status
from conformance.runner.baseline import Baseline
from conformance.runner.budget import BUDGETS, Budget
from conformance.runner.deviations import expected_of, weighed
from conformance.runner.opened import judge_row
from conformance.runner.plan import Plan, Row
from conformance.runner.result import CheckResult
from conformance.runner.selection import Selection, validated
from conformance.runtimes.contracts import http_registry
from conformance.runtimes.declared import HARMLESS, HttpClass, HttpDeclared
from conformance.runtimes.identity import observe
from conformance.runtimes.profile import Effect, Route, RuntimeProfile, State
from conformance.runtimes.stream_error import TABLE as STREAM_ERRORS
from conformance.runtimes.stream_error import check_routes
from conformance.runtimes.worker import WorkerTerms

_POLL_SECONDS = 0.1
_LEAST_SECONDS = 0.01
_UNAVAILABLE = 503
# What a server that is about to come up does to those who are early.
_NOT_YET = frozenset({End.CONNECT, End.NO_RESPONSE})


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How to judge an HTTP target.

    profile: a runtime profile. model: what requests ask for, empty = the first one listed, if the
    runtime lists any. scripted: the server serves the scripted model. conditions: names that hold
    for this server. allowed: effects that a call may have. context_tokens: the longest prompt that
    it was started for, 0 = not stated. worker: the terms of a worker, None for a runtime.
    stream_errors: fields of requests that fail inside a stream, by route. The others are those of
    conformance.runner.session.Options.
    """

    target: HttpTarget
    profile: RuntimeProfile
    model: str = ""
    scripted: bool = False
    conditions: tuple[str, ...] = ()
    allowed: frozenset[Effect] = HARMLESS
    context_tokens: int = 0
    budget: Budget = BUDGETS["standard"]
    seed: int | None = None
    jobs: int = 1
    selection: Selection = field(default_factory=Selection)
    ready_timeout: float = 30.0
    slow_factor: float = 1.0
    time_limit: float | None = None
    recorder: Callable[[Exchange], None] = lambda _: None
    baseline: Baseline | None = None
    limits: Limits = DEFAULT
    worker: WorkerTerms | None = None
    stream_errors: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )


@dataclass(frozen=True, slots=True)
class HttpSession:
    """An HTTP target that can be judged. `stop` ends every check that still runs."""

    options: HttpOptions
    registry: Registry
    declared: HttpDeclared
    plan: Plan
    seed: int
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        """Where the target is, as reports name it."""
        return self.options.target.address

    def connect(self) -> HttpConnection:
        """A new connection; the caller closes it."""
        options = self.options
        return HttpConnection(options.target, options.limits.slower(options.slow_factor))

    def probe(self, requirement: str, connection: HttpConnection) -> HttpProbe:
        """A probe for one check, with the whole budget of a check to spend."""
        budget = self.options.budget
        return HttpProbe(
            requirement,
            connection,
            self.declared,
            Spending(budget.requests, budget.tokens),
            self.stop,
            slow_factor=self.options.slow_factor,
            listener=self.options.recorder,
        )

    def judge(self, row: Row, check: Check, connection: Any) -> CheckResult:
        """Judge one requirement of the plan, as far as the profile's claims let it count."""
        result = judge_row(self, row, check, connection)
        return weighed(row.requirement, result, self.declared)


def open_http_session(
    options: HttpOptions,
    registry: Registry | None = None,
    checks: Mapping[str, Check] | None = None,
) -> HttpSession:
    """Reach the target, note what it says about itself, and plan the run.

    Raises ConfigError for a selection or condition that does not exist and UnreachableError for a
    target that gives no usable answer in time.
    """
    registry = http_registry() if registry is None else registry
    checks = http_checks() if checks is None else checks
    selection = validated(options.selection, registry)
    for condition in options.conditions:
        if condition not in options.profile.conditions:
            raise unknown_name("condition", condition, options.profile.conditions)
    check_routes(options.stream_errors, options.profile.streaming, STREAM_ERRORS)
    declared = HttpDeclared(
        options.profile,
        options.model,
        options.scripted,
        frozenset(options.conditions),
        options.allowed,
        options.context_tokens,
        stream_errors=options.stream_errors,
    )
    if options.worker is not None:
        declared = replace(declared, target_class=HttpClass.WORKER, worker=options.worker)
    with HttpConnection(options.target, options.limits.slower(options.slow_factor)) as connection:
        patience = min(options.ready_timeout, options.time_limit or options.ready_timeout)
        _wait_ready(connection, options, patience)
        declared = observe(connection, declared, options.limits.within(patience))
    expected = expected_of(declared, registry, options.baseline)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    return HttpSession(
        replace(options, baseline=expected),
        registry,
        declared,
        http_plan(registry, checks, declared, selection),
        seed,
    )


def _wait_ready(connection: HttpConnection, options: HttpOptions, seconds: float) -> None:
    """Wait until the server answers HTTP at all, and while a runtime says that it is not there yet
    (503). That it then is well is a requirement, and no premise.
    """
    route = _passive(options.profile)
    end = time.monotonic() + seconds
    while True:
        limits = options.limits.within(max(_LEAST_SECONDS, end - time.monotonic()))
        request = Request(route.method, route.path)
        seen = connection.finish(connection.start(request, route=route.name, limits=limits))
        late = time.monotonic() >= end
        starting = seen.status == _UNAVAILABLE and options.worker is None
        if seen.status is not None and (late or not starting):
            return
        if late or not (starting or seen.ending.kind in _NOT_YET):
            raise UnreachableError(
                f"{options.target.address}: no usable answer to {seen.name} within "
                f"{seconds:.0f} s ({describe(seen)})"
            )
        time.sleep(_POLL_SECONDS)


def _passive(profile: RuntimeProfile) -> Route:
    for route in profile.routes:
        if route.effect is Effect.NON_MUTATING and route.method == "GET" and not route.condition:
            return route
    raise ConfigError("no route can be called without effect", source=profile.source)


def http_plan(
    registry: Registry,
    checks: Mapping[str, Check],
    declared: HttpDeclared,
    selection: Selection,
) -> Plan:
    """The plan for a target: the contracts that its runtime profile names are judged."""
    rows = tuple(
        _row(requirement, checks.get(requirement.id), declared, selection)
        for contract in registry.profiles
        for requirement in contract.requirements
    )
    judged = tuple(each for each in registry.profiles if _judged(each, declared, selection))
    return Plan(judged, rows)


def _judged(contract: Profile, declared: HttpDeclared, selection: Selection) -> bool:
    return selection.wants(contract.name) and contract.name in declared.profiles


def _row(
    requirement: Requirement, check: Check | None, declared: HttpDeclared, selection: Selection
) -> Row:
    if requirement.profile not in declared.profiles:
        detail = f"no route of {declared.runtime.id} follows {requirement.profile}"
        reason = SkipReason.PROFILE_NOT_ADVERTISED
        return Row(requirement, None, Status.NOT_APPLICABLE, reason, detail)
    if not selection.wants(requirement.profile) or not selection.includes(requirement):
        return Row(requirement, None, Status.EXCLUDED, SkipReason.OPERATOR, "not selected")
    if requirement.capability:
        capability = declared.capability(requirement.capability)
        if capability.state is State.CONDITIONAL and not declared.states(capability.condition):
            detail = (
                f"{capability.name} is conditional: {capability.when}; where that holds, say "
                f"--condition {capability.condition}"
            )
            return Row(requirement, None, Status.NOT_APPLICABLE, SkipReason.CONDITION, detail)
    return Row(requirement, check)
