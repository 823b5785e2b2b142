"""Health/Watch over time: no repetition, many watchers, idleness, the end; and Health/List."""

from __future__ import annotations

from collections.abc import Iterable

import grpc

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.core.discovery_calls import (
    INFERENCE,
    WATCH,
    check_health,
    serving_status,
    status_name,
)
from conformance.checks.core.health import known_names
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies import simple_case
from conformance.wire.connection import Connection
from conformance.wire.declared import Declared
from oe_wire import health
from oe_wire.services import METHODS

LIST = "grpc.health.v1.Health/List"
# What HEALTH-017 asks for. A whole minute is spent by budgets of more than this many requests;
# the others watch for a second, with as many watchers.
WATCHERS = 50
IDLE_SECONDS = 60.0
SHORT_SECONDS = 1.0
LONG_BUDGET = 2000


def _quiet(declared: Declared) -> Iterable[Case]:
    request = simple_case(declared).request if declared.generates else None
    return [Case(request, params={"service": service}) for service in ("", INFERENCE)]


@check(
    "OE-CORE-HEALTH-007",
    table=_quiet,
    advice="Remember what was last sent on each watch and write only what differs; some health "
    "libraries write on every set.",
)
def no_repetition(probe: Probe, case: Case) -> None:
    """While nothing changes a watch says nothing more; on any watch no message repeats."""
    watch = probe.start(WATCH, health.HealthCheckRequest(service=case.params["service"]))
    watch.wait_event(1, timeout=probe.pace.unary_limit())
    if case.request is not None:
        probe.generate(case)
    check_health(probe, case.params["service"])
    watch.cancel()
    probe.finish(watch)
    probe.settle()


def _crowds(_: Declared) -> Iterable[Case]:
    yield Case(params={"watchers": WATCHERS, "seconds": SHORT_SECONDS})
    yield Case(params={"watchers": WATCHERS, "seconds": IDLE_SECONDS})


@check(
    "OE-CORE-HEALTH-017",
    table=_crowds,
    waits=SHORT_SECONDS,
    advice="Keep a watch open however long nothing changes (no idle limit, no deadline of the "
    "server's own), and give watchers no thread each.",
)
def idle_watchers(probe: Probe, case: Case) -> None:
    """Fifty watches stay open while nothing happens."""
    seconds = case.params["seconds"]
    if seconds > SHORT_SECONDS and probe.spending.max_requests < LONG_BUDGET:
        probe.skip(f"{seconds:g} s of idleness are for the thorough budget")
    limit = seconds + probe.pace.unary_limit() * 2
    request = health.HealthCheckRequest(service="")
    watches = [probe.start(WATCH, request, deadline=limit) for _ in range(case.params["watchers"])]
    begun = [watch.wait_event(1, timeout=probe.pace.unary_limit()) for watch in watches]
    probe.wait_until(lambda: any(watch.done for watch in watches), seconds)
    open_still = [not watch.done for watch in watches]
    for watch in watches:
        watch.cancel()
    calls = [probe.finish(watch) for watch in watches]
    for call, began, stayed in zip(calls, begun, open_still, strict=True):
        if not began:
            probe.fail(f"{len(watches)} watches with a first message", describe(call), call)
        if not stayed:
            probe.fail(f"the watch open after {seconds:g} s", describe(call), call)


@check(
    "OE-CORE-HEALTH-018",
    advice="On the signal to stop set every status to NOT_SERVING first, let the watchers have "
    "it, and only then close.",
)
def told_of_the_end(probe: Probe, _: Case) -> None:
    """A watcher sees NOT_SERVING before a stopping engine closes the connection."""
    base = probe.connection
    probe.spending.requests += 1
    probe.methods.add(WATCH)
    with Connection(base.target, base.routes) as own:
        limit = 10 * probe.pace.unary_limit()
        request = health.HealthCheckRequest(service=INFERENCE)
        watch = own.start(METHODS[WATCH], request, deadline=limit)
        if not watch.wait_event(1, timeout=probe.pace.unary_limit()):
            probe.skip("the watch did not begin")
        with steering.stopped(probe):
            call = watch.finish(probe.pace.unary_limit())
    probe.record(call)
    seen = _names(call.messages)
    if "NOT_SERVING" not in seen:
        probe.fail("NOT_SERVING before the end of the connection", ", ".join(seen), call)


def _names(messages: Iterable[object]) -> list[str]:
    return [status_name(getattr(message, "status", 0)) for message in messages]


@check(
    "OE-CORE-HEALTH-019",
    advice="Answer List from the same table as Check, or not at all.",
)
def listed_names(probe: Probe, _: Case) -> None:
    """List, where it is served, has every known name with the status that Check gives."""
    call = probe.call(LIST, health.HealthListRequest())
    if call.rejected and call.ending.code is grpc.StatusCode.UNIMPLEMENTED:
        return
    message = call.messages[0] if call.ending.ok and call.messages else None
    if not isinstance(message, health.HealthListResponse):
        probe.fail("a list, or UNIMPLEMENTED", describe(call), call)
    for name in known_names(probe.declared):
        if name not in message.statuses:
            probe.fail(f"{name!r} in the list", f"{len(message.statuses)} other names", call)
        listed = status_name(message.statuses[name].status)
        checked = serving_status(check_health(probe, name))
        if listed != checked:
            probe.fail(f"{checked} for {name!r} in the list, as from Check", listed, call)
