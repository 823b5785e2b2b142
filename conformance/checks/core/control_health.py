"""Control.Health: its probe, what it is asked about, and an engine that is stuck."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import cast

import grpc

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.core.discovery_calls import answer
from conformance.checks.core.release import at_rest, running
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies.faults import UNKNOWN_MODEL
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

PROBE = "inference_probe"
ROLE = "role"
# Seconds in which a probe of a stuck engine must have an answer (HEALTH-016).
STUCK_SECONDS = 60.0
# Calls without a probe, after each of which the load is looked at.
PLAIN_CALLS = 5


def _probes(declared: Declared) -> Iterable[Case]:
    states = ["running"] + (["paused"] if "admin" in declared.profiles else [])
    for state in states:
        yield Case(v1.HealthRequest(include_inference_probe=False), params={"state": state})
    yield Case(v1.HealthRequest(include_inference_probe=True), params={"state": "running"})


@check(
    "OE-CORE-HEALTH-014",
    table=_probes,
    advice="Run inference only for include_inference_probe, and report it as one check named "
    "inference_probe.",
)
def probe_on_demand(probe: Probe, case: Case) -> None:
    """Without the flag nothing is run; with it exactly one check is named inference_probe."""
    request = cast(v1.HealthRequest, case.request)
    with ExitStack() as stack:
        if case.params["state"] == "paused":
            # A call that ran inference would wait for the end of the pause.
            stack.enter_context(steering.paused(probe))
        if request.include_inference_probe:
            _one_check(probe, request)
        else:
            _no_inference(probe, request)


def _one_check(probe: Probe, request: v1.HealthRequest) -> None:
    if not _offers_probe(probe.declared):
        probe.skip("the engine lists no inference probe")
    call = _health(probe, request)
    unimplemented = call.rejected and call.ending.code is grpc.StatusCode.UNIMPLEMENTED
    if probe.declared.legacy and unimplemented:
        # A v0.1.0 engine cannot list its probes, and so says that it has none.
        probe.tolerate(f"one check named {PROBE}", describe(call), call)
    names = [item.name for item in _response(probe, call).checks]
    if names.count(PROBE) != 1:
        probe.fail(f"one check named {PROBE}", f"the checks {sorted(names)}", call)


def _offers_probe(declared: Declared) -> bool:
    scope = declared.engine_scope
    return scope is None or v1.HEALTH_PROBE_KIND_INFERENCE in scope.core.health_probes


def _no_inference(probe: Probe, request: v1.HealthRequest) -> None:
    before = at_rest(probe)
    for _ in range(PLAIN_CALLS):
        call = _health(probe, request)
        if not call.ending.ok and not call.rejected:
            probe.fail("an answer without running inference", describe(call), call)
        names = [item.name for item in _response(probe, call).checks]
        if PROBE in names:
            probe.fail(f"no check named {PROBE} without the flag", "one", call)
        now = running(probe)
        if before is not None and now is not None and now > before:
            probe.fail(f"running_requests {before}, as before the call", f"{now}", call)


def _health(probe: Probe, request: v1.HealthRequest, seconds: float = 0.0) -> Transcript:
    deadline = probe.pace.required(seconds) + probe.pace.unary_limit() if seconds else None
    return probe.call("Control/Health", request, deadline=deadline)


def _response(probe: Probe, call: Transcript) -> v1.HealthResponse:
    message = answer(call, v1.HealthResponse)
    if message is None:
        probe.skip(f"Control.Health gave no answer: {describe(call)}")
    return message


def _questions(declared: Declared) -> Iterable[Case]:
    yield Case(v1.HealthRequest(include_inference_probe=True, model=UNKNOWN_MODEL))
    for role, name in (
        (v1.ENGINE_ROLE_PREFILL, "prefill"),
        (v1.ENGINE_ROLE_DECODE, "decode"),
        (v1.ENGINE_ROLE_AGGREGATED, "aggregated"),
    ):
        # What an unspecified role differs from is not said.
        if declared.role not in {name, "unspecified"}:
            yield Case(v1.HealthRequest(role=role))


@check(
    "OE-CORE-HEALTH-015",
    table=_questions,
    advice="Look the model up before anything else, and compare the asked role with your own.",
)
def asked_model_and_role(probe: Probe, case: Case) -> None:
    """An unknown model is NOT_FOUND; another role gives a check `role` that is not READY."""
    request = cast(v1.HealthRequest, case.request)
    call = _health(probe, request, STUCK_SECONDS if request.include_inference_probe else 0.0)
    if request.model:
        if request.include_inference_probe and not _offers_probe(probe.declared):
            probe.skip("the engine lists no inference probe")
        probe.expect_rejected(call, grpc.StatusCode.NOT_FOUND, because="the model is unknown")
        return
    found = [item.state for item in _response(probe, call).checks if item.name == ROLE]
    wanted = f"one check named {ROLE} that is not READY"
    if len(found) != 1:
        probe.fail(wanted, f"{len(found)} of them", call)
    if found[0] == v1.HEALTH_STATE_READY:
        probe.fail(wanted, "READY", call)


@check(
    "OE-CORE-HEALTH-016",
    advice="Give the probe a limit of its own below 60 s and report DEGRADED when it strikes; do "
    "not wait for the engine.",
)
def stuck_engine(probe: Probe, _: Case) -> None:
    """While the engine makes no progress, the probe returns in time and says so."""
    if not _offers_probe(probe.declared):
        probe.skip("the engine lists no inference probe")
    with steering.fault(probe, v1.FAULT_KIND_ENGINE_WEDGED):
        call = _health(probe, v1.HealthRequest(include_inference_probe=True), STUCK_SECONDS)
    wanted = f"DEGRADED or NOT_READY within {STUCK_SECONDS:g} s"
    if not call.ending.ok:
        probe.fail(wanted, describe(call), call)
    state = _response(probe, call).state
    if state not in {v1.HEALTH_STATE_DEGRADED, v1.HEALTH_STATE_NOT_READY}:
        probe.fail(wanted, v1.HealthState.Name(state), call)
