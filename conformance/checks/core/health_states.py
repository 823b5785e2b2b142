"""Standard health while generation is paused, at work or at rest; and what Control.Health says."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.core.discovery_calls import (
    CONTROL,
    DISCOVERY,
    INFERENCE,
    WATCH,
    advertised_services,
    check_health,
    engine_facts,
    read,
    serving_status,
    status_name,
)
from conformance.checks.core.judging import completed, send_cut
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies import simple_case
from conformance.wire.connection import DATA_PLANE
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Transcript
from oe_wire import health, v1

OBSERVABILITY = "openengine.v1.OpenEngineObservability"
ADMIN = "openengine.v1.OpenEngineAdmin"
# Services that go on while the data plane does not.
OTHER_PLANES = (DISCOVERY, OBSERVABILITY, ADMIN)
SERVING, NOT_SERVING = "SERVING", "NOT_SERVING"
# Seconds that a change of state may take to reach the health service; no row names a limit.
SETTLES = 3.0
# Seconds for which new work must not run on a paused engine. An engine that ran it would have
# answered long before: a token takes milliseconds.
HELD_SECONDS = 0.3
# After which a watch of a status that does not change has told it.
STEADY_SECONDS = 1.0
# Requests that make an engine busy.
BUSY = 8
# Two looks at two services may lie on either side of a change.
LOOKS = 3


def data_planes(declared: Declared) -> tuple[str, ...]:
    """Advertised services that carry requests, the primary one first."""
    scope = declared.engine_scope
    advertised = () if scope is None else advertised_services(scope)
    others = tuple(name for name in advertised if name in DATA_PLANE and name != INFERENCE)
    return (INFERENCE, *others) if declared.generates or not others else (*others, INFERENCE)


def status_of(probe: Probe, service: str) -> str:
    """What Check says of a service now."""
    return serving_status(check_health(probe, service))


def settled(probe: Probe, service: str, wanted: str) -> Transcript:
    """Ask Check until it says `wanted` or SETTLES has passed; the last answer."""
    calls: list[Transcript] = []

    def reached() -> bool:
        calls.append(check_health(probe, service))
        return serving_status(calls[-1]) == wanted

    probe.wait_until(reached, probe.pace.required(SETTLES))
    return calls[-1]


def _states(declared: Declared) -> Iterable[Case]:
    """The states that a check can bring about: paused first, since that is where engines err."""
    states = ("paused", "running") if "admin" in declared.profiles else ("running",)
    return [Case(params={"state": state}) for state in states]


def _enter(probe: Probe, state: str, stack: ExitStack) -> None:
    """Bring the engine into a state until the stack is closed."""
    if state == "paused":
        stack.enter_context(steering.paused(probe))


def _watched(declared: Declared) -> Iterable[Case]:
    return [Case(params={"service": name}) for name in ("", *data_planes(declared)[:1])]


@check(
    "OE-CORE-HEALTH-006",
    table=_watched,
    advice="Set the status in one place, which tells every watcher of the name each change in "
    "order; a watcher that polls misses short ones.",
)
def watch_tells_changes(probe: Probe, case: Case) -> None:
    """A watch brings NOT_SERVING when generation is paused and SERVING when it goes on."""
    service = case.params["service"]
    watch = probe.start(
        WATCH, health.HealthCheckRequest(service=service), deadline=10 * probe.pace.unary_limit()
    )
    limit = probe.pace.unary_limit()
    if not watch.wait_event(1, timeout=limit) or _last(watch) != SERVING:
        watch.cancel()
        probe.skip(f"the watch did not begin with SERVING: {describe(probe.finish(watch))}")
    with steering.paused(probe):
        during = settled(probe, service, NOT_SERVING)
        if serving_status(during) != NOT_SERVING:
            probe.skip(f"a pause does not change the status: {serving_status(during)}")
        probe.wait_until(lambda: _last(watch) == NOT_SERVING, probe.pace.required(SETTLES))
        seen = _statuses(watch)
    after = settled(probe, service, SERVING)
    probe.wait_until(lambda: _last(watch) == SERVING, probe.pace.required(SETTLES))
    watch.cancel()
    call = probe.finish(watch)
    if NOT_SERVING not in seen:
        probe.fail("NOT_SERVING on the watch while paused", ", ".join(seen), call)
    if serving_status(after) == SERVING and _names(call)[-1] != SERVING:
        probe.fail("the current status, SERVING, last on the watch", ", ".join(_names(call)), call)


def _statuses(watch: LiveCall) -> list[str]:
    return [status_name(getattr(event.message, "status", 0)) for event in watch.events]


def _last(watch: LiveCall) -> str:
    return next(iter(reversed(_statuses(watch))), "nothing")


def _names(call: Transcript) -> list[str]:
    return [status_name(getattr(message, "status", 0)) for message in call.messages]


@check(
    "OE-CORE-HEALTH-009",
    advice="Give each service a status of its own: a pause stops the data plane, and discovery, "
    "observability and admin go on.",
)
def status_per_service(probe: Probe, _: Case) -> None:
    """While paused the data plane is NOT_SERVING and the other services that answer SERVING."""
    scope = probe.declared.engine_scope
    advertised = () if scope is None else advertised_services(scope)
    with steering.paused(probe):
        for service in data_planes(probe.declared):
            call = settled(probe, service, NOT_SERVING)
            if serving_status(call) != NOT_SERVING:
                wanted = f"NOT_SERVING for {service} while paused"
                probe.fail(wanted, serving_status(call), call)
        facts = engine_facts(probe)
        for service in OTHER_PLANES:
            if service != DISCOVERY and service not in advertised:
                continue
            call = check_health(probe, service)
            if serving_status(call) != SERVING:
                wanted = f"SERVING for {service} while paused"
                probe.fail(wanted, serving_status(call), call)
    if not facts.call.ending.ok:
        probe.fail("discovery to answer while paused", describe(facts.call), facts.call)


@check(
    "OE-CORE-HEALTH-010",
    table=_states,
    advice="Let the empty name follow the service that generates, and nothing else.",
)
def empty_name_follows(probe: Probe, case: Case) -> None:
    """The empty name is SERVING exactly when the primary data plane is."""
    primary = data_planes(probe.declared)[0]
    with ExitStack() as stack:
        _enter(probe, case.params["state"], stack)
        for look in range(LOOKS):
            own = check_health(probe, "")
            planes = status_of(probe, primary)
            if (serving_status(own) == SERVING) == (planes == SERVING):
                return
            if look == LOOKS - 1:
                probe.fail(f"{planes}, as {primary}", serving_status(own), own)
            probe.wait_until(lambda: False, probe.pace.unary)


def _transitions(declared: Declared) -> Iterable[Case]:
    states = ("paused", "running") if "admin" in declared.profiles else ("running",)
    return [Case(simple_case(declared).request, params={"state": state}) for state in states]


@check(
    "OE-CORE-HEALTH-011",
    table=_transitions,
    advice="Change the status with the admission: before the first request is refused, and after "
    "the first one can be accepted again.",
)
def status_means_admission(probe: Probe, case: Case) -> None:
    """SERVING means that a request is accepted, NOT_SERVING that it does not run."""
    if not probe.declared.generates:
        probe.skip("the engine does not generate")
    if case.params["state"] == "paused":
        with steering.paused(probe):
            if status_of(probe, INFERENCE) != NOT_SERVING:
                probe.skip("the data plane is not NOT_SERVING while paused")
            _not_run(probe, case)
    call = settled(probe, INFERENCE, SERVING)
    if serving_status(call) != SERVING:
        probe.skip(f"Inference is {serving_status(call)}")
    stream = send_cut(probe, case, probe.prepared(case))
    if stream.ending.ok or stream.accepted:
        completed(probe, stream)
    else:
        probe.fail("acceptance while Inference is SERVING", describe(stream), stream)


def _not_run(probe: Probe, case: Case) -> None:
    """New work is refused, or accepted and held; it brings no tokens."""
    live = probe.start_generate(case)
    live.wait_end(HELD_SECONDS * probe.pace.slow_factor)
    live.cancel()
    stream = probe.finish(live)
    for position, message in enumerate(stream.messages):
        if isinstance(message, v1.GenerateResponse) and message.HasField("token"):
            wanted = "new work refused or held while Inference is NOT_SERVING"
            probe.fail(wanted, "tokens", stream, position)


@check(
    "OE-CORE-HEALTH-012",
    table=_states,
    advice="Derive Control.Health and the standard status from one state.",
)
def control_agrees(probe: Probe, case: Case) -> None:
    """READY or DEGRADED while Inference is SERVING, STARTING or NOT_READY otherwise."""
    with ExitStack() as stack:
        _enter(probe, case.params["state"], stack)
        if case.params["state"] == "paused":
            settled(probe, INFERENCE, NOT_SERVING)
        for look in range(LOOKS):
            state = read(probe, "Control/Health", v1.HealthRequest(), v1.HealthResponse)
            standard = status_of(probe, INFERENCE)
            fit = state.message.state in {v1.HEALTH_STATE_READY, v1.HEALTH_STATE_DEGRADED}
            if fit == (standard == SERVING):
                return
            if look == LOOKS - 1:
                allowed = "READY or DEGRADED" if standard == SERVING else "STARTING or NOT_READY"
                name = v1.HealthState.Name(state.message.state)
                probe.fail(f"{allowed} while Inference is {standard}", name, state.call)
            probe.wait_until(lambda: False, probe.pace.unary)


def _busy_cases(declared: Declared) -> Iterable[Case]:
    names = ("", *data_planes(declared)[:1], CONTROL, DISCOVERY)
    return [Case(params={"services": list(names), "busy": busy}) for busy in (True, False)]


@check(
    "OE-CORE-HEALTH-020",
    table=_busy_cases,
    advice="Keep load out of the status: a full engine serves, and refuses with "
    "RESOURCE_EXHAUSTED what is too much.",
)
def status_under_load(probe: Probe, case: Case) -> None:
    """A busy engine stays SERVING, and Watch and Check say the same."""
    services = case.params["services"]
    before = {service: status_of(probe, service) for service in services}
    with ExitStack() as stack:
        if case.params["busy"]:
            for _ in range(BUSY):
                stack.enter_context(steering.busy(probe))
        for service in services:
            now = check_health(probe, service)
            if serving_status(now) != before[service]:
                what = "under load" if case.params["busy"] else "at rest"
                probe.fail(f"{before[service]} for {service!r} {what}", serving_status(now), now)
            _same_on_watch(probe, service, serving_status(now))


def _same_on_watch(probe: Probe, service: str, checked: str) -> None:
    watch = probe.start(WATCH, health.HealthCheckRequest(service=service))
    watch.wait_event(1, timeout=probe.pace.unary_limit())
    # What a watch begins with is another row's matter; here it is what it comes to rest at.
    probe.wait_until(
        lambda: watch.done or _statuses(watch)[-1:] == [checked],
        probe.pace.required(STEADY_SECONDS),
    )
    watch.cancel()
    call = probe.finish(watch)
    names = _names(call)
    if not names:
        probe.skip(f"Watch sent nothing: {describe(call)}")
    if names[-1] != checked and status_of(probe, service) == checked:
        probe.fail(f"{checked} for {service!r} on Watch, as from Check", names[-1], call)
