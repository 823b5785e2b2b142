"""Standard gRPC health by service name (Check, Watch), and the state that Control.Health gives."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import (
    FIXED_SERVICES,
    INFERENCE,
    WATCH,
    advertised_services,
    check_health,
    read,
    serving_status,
    status_name,
)
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from oe_wire import health, v1
from oe_wire.services import SERVICES

HEALTH_SERVICE = "grpc.health.v1.Health"
NO_ANSWERS = ("UNKNOWN", "SERVICE_UNKNOWN")
ANSWERS = ("SERVING", "NOT_SERVING")
# Seconds in which Watch must send its first message (HEALTH-004), and for which a watch of an
# unknown name must stay open (HEALTH-005).
FIRST_SECONDS = 1.0
OPEN_SECONDS = 2.0
# A Check that takes this share of FIRST_SECONDS shows a machine too slow to time a Watch on.
SLOW_SHARE = 0.25
# Names close to known ones that a server might match by accident. Health names are exact.
NEAR_NAMES = ("Inference", "openengine.v1.inference", "openengine.v1.Inference/Generate")
UNKNOWN = "never.served.Service"


def known_names(declared: Declared) -> tuple[str, ...]:
    """Every name that must be known, "" first. The health service itself need not be."""
    scope = declared.engine_scope
    advertised = () if scope is None else advertised_services(scope)
    names = dict.fromkeys(("", *FIXED_SERVICES, *advertised))
    return tuple(name for name in names if name != HEALTH_SERVICE)


def _service_table(declared: Declared) -> Iterable[Case]:
    return [Case(params={"service": name}) for name in known_names(declared) if name]


def _unknown_table(_: Declared) -> Iterable[Case]:
    return [Case(params={"service": name}) for name in (UNKNOWN, *NEAR_NAMES)]


def _unwatched_table(_: Declared) -> Iterable[Case]:
    """Few names: each costs OPEN_SECONDS."""
    return [Case(params={"service": name}) for name in (UNKNOWN, NEAR_NAMES[0])]


def _unknown_names(_: Declared) -> SearchStrategy[Case]:
    part = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
    package = st.sampled_from(("never.served", "openengine.v1.never", "x"))
    names = st.builds(lambda start, end: f"{start}.{end}_service", package, part)
    return names.map(lambda name: Case(params={"service": name}))


def _watch_table(_: Declared) -> Iterable[Case]:
    return [Case(params={"service": name}) for name in ("", INFERENCE)]


@check(
    "OE-CORE-HEALTH-001",
    advice="Register the empty service name in the health service with the status of the primary "
    "data plane.",
)
def overall_status(probe: Probe, _: Case) -> None:
    """Check of the empty name answers SERVING or NOT_SERVING."""
    _known(probe, "")


@check(
    "OE-CORE-HEALTH-002",
    table=_service_table,
    advice="Register every advertised service, and Inference, Control and OpenEngineDiscovery, by "
    "full name in the health service.",
)
def service_status(probe: Probe, case: Case) -> None:
    """Check answers SERVING or NOT_SERVING for each advertised service."""
    _known(probe, case.params["service"])


def _known(probe: Probe, service: str) -> None:
    call = check_health(probe, service)
    status = serving_status(call)
    if status not in ANSWERS:
        probe.fail(f"SERVING or NOT_SERVING for {service!r}", status, call)


@check(
    "OE-CORE-HEALTH-003",
    table=_unknown_table,
    strategy=_unknown_names,
    advice="Answer NOT_FOUND for a name that is not registered; names match exactly.",
)
def unknown_service(probe: Probe, case: Case) -> None:
    """Check of a name that nobody registered gives NOT_FOUND."""
    service = case.params["service"]
    if service in known_names(probe.declared) or service in SERVICES:
        probe.skip("the drawn name is one that the engine may know")
    call = check_health(probe, service)
    probe.expect_rejected(call, grpc.StatusCode.NOT_FOUND, because="no service has this name")


@check(
    "OE-CORE-HEALTH-004",
    table=_watch_table,
    advice="Send the current status when a watch begins, before waiting for a change.",
)
def watch_starts_at_once(probe: Probe, case: Case) -> None:
    """Watch sends its first message within a second."""
    service = case.params["service"]
    before = check_health(probe, service)
    if not before.ending.ok:
        probe.skip(f"Check does not know the name: {describe(before)}")
    watch = _watch(probe, service)
    limit = probe.pace.required(FIRST_SECONDS) + probe.pace.slow_factor * (
        1.0 + 20 * probe.pace.unary
    )
    in_time = watch.wait_event(1, timeout=limit)
    after = check_health(probe, service)
    watch.cancel()
    call = probe.finish(watch)
    if in_time:
        return
    if max(before.ending.seconds, after.ending.seconds) > SLOW_SHARE * FIRST_SECONDS:
        probe.skip("the machine is too slow to time the first message")
    probe.fail(f"a first message within {FIRST_SECONDS:g} s", describe(call), call)


@check(
    "OE-CORE-HEALTH-005",
    table=_unwatched_table,
    waits=OPEN_SECONDS,
    advice="On a watch of an unknown name send SERVICE_UNKNOWN and wait: the name may be "
    "registered later.",
)
def watch_unknown_service(probe: Probe, case: Case) -> None:
    """Watch of an unknown name sends SERVICE_UNKNOWN and stays open."""
    service = case.params["service"]
    if service in known_names(probe.declared) or service in SERVICES:
        probe.skip("the drawn name is one that the engine may know")
    watch = _watch(probe, service)
    watch.wait_event(1, timeout=probe.pace.unary_limit())
    ended = watch.wait_end(probe.pace.required(OPEN_SECONDS))
    watch.cancel()
    call = probe.finish(watch)
    message = call.messages[0] if call.messages else None
    if not isinstance(message, health.HealthCheckResponse):
        probe.fail("SERVICE_UNKNOWN", describe(call), call)
    if message.status != health.HealthCheckResponse.SERVICE_UNKNOWN:
        probe.fail("SERVICE_UNKNOWN", status_name(message.status), call, 0)
    if ended:
        probe.fail(f"the watch open after {OPEN_SECONDS:g} s", describe(call), call)


def _watch(probe: Probe, service: str) -> LiveCall:
    return probe.start(WATCH, health.HealthCheckRequest(service=service))


@check(
    "OE-CORE-HEALTH-008",
    advice="Register names with their real status, and answer NOT_FOUND from Check for the others.",
)
def no_unknown_status(probe: Probe, _: Case) -> None:
    """UNKNOWN is never sent for a known name, and Check never answers SERVICE_UNKNOWN."""
    for service in known_names(probe.declared):
        call = check_health(probe, service)
        status = serving_status(call)
        if status in NO_ANSWERS:
            probe.fail(f"SERVING or NOT_SERVING for {service!r}", status, call)
    call = check_health(probe, UNKNOWN)
    if serving_status(call) == "SERVICE_UNKNOWN":
        probe.fail("NOT_FOUND from Check for an unknown name", "SERVICE_UNKNOWN", call)
    watch = _watch(probe, INFERENCE)
    watch.wait_event(1, timeout=probe.pace.unary_limit())
    watch.cancel()
    call = probe.finish(watch)
    for position, message in enumerate(call.messages):
        status = status_name(getattr(message, "status", 0))
        if status == "UNKNOWN":
            probe.fail(f"SERVING or NOT_SERVING for {INFERENCE!r}", status, call, position)


@check(
    "OE-CORE-HEALTH-013",
    advice="Always set the state of Control.Health, and give each check a name of its own.",
)
def control_health(probe: Probe, _: Case) -> None:
    """Control.Health has a state, and its checks have names that are set and differ."""
    state = read(probe, "Control/Health", v1.HealthRequest(), v1.HealthResponse)
    if state.message.state == v1.HEALTH_STATE_UNSPECIFIED:
        probe.fail("a state other than UNSPECIFIED", "UNSPECIFIED", state.call)
    names = [item.name for item in state.message.checks]
    if "" in names:
        probe.fail("a name for each check", "a check without one", state.call)
    if len(set(names)) < len(names):
        probe.fail("checks of different names", f"the names {sorted(names)}", state.call)
