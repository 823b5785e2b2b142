"""Puts the target into a state that a requirement speaks about, and always takes it out again.

For exclusive checks: what happens here is seen by every other client. Whatever the target does
not offer makes the check skip. The way back is taken on a connection of its own, so that it is
taken even when the run is being stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
from google.protobuf.message import Message

from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies.simple import LONG_TOKENS, long_request
from conformance.wire.connection import Connection
from conformance.wire.hooks import Hooks
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Transcript
from oe_wire import health, v1
from oe_wire.services import METHODS

ADMIN = "openengine.v1.OpenEngineAdmin"
TESTING = "openengine.v1.OpenEngineTesting"
OBSERVABILITY = "openengine.v1.OpenEngineObservability"
HEALTH_CHECK = "grpc.health.v1.Health/Check"
# Within which ended work must be gone (ABORT-012, CANCEL-001, LOAD-009).
RELEASE_SECONDS = 5.0


def pause_modes(probe: Probe) -> tuple[int, ...]:
    """The listed pause modes, the one that disturbs requests least first."""
    scope = probe.declared.engine_scope
    listed = () if scope is None else tuple(scope.admin.pause_modes)
    order = (v1.PAUSE_MODE_KEEP, v1.PAUSE_MODE_ABORT, v1.PAUSE_MODE_WAIT)
    return tuple(mode for mode in order if mode in listed)


@contextmanager
def paused(probe: Probe, mode: int | None = None) -> Iterator[Transcript]:
    """Generation is paused while the block runs, in the gentlest mode that is listed when None;
    yields the PauseGeneration call.
    """
    if "admin" not in probe.declared.profiles:
        probe.skip("the engine does not advertise admin")
    if mode is None:
        mode = next(iter(pause_modes(probe)), v1.PAUSE_MODE_ABORT)
    try:
        call = probe.call(f"{ADMIN}/PauseGeneration", v1.PauseGenerationRequest(mode=mode))
        if not call.ending.ok:
            probe.skip(f"PauseGeneration was not granted: {describe(call)}")
        yield call
    finally:
        undo(probe, f"{ADMIN}/ResumeGeneration", v1.ResumeGenerationRequest())


@contextmanager
def fault(
    probe: Probe,
    kind: int,
    *,
    request_id: str | None = None,
    after_tokens: int | None = None,
    duration_ms: int | None = None,
) -> Iterator[None]:
    """A fault is armed while the block runs."""
    if "testing" not in probe.declared.profiles:
        probe.skip("the engine does not advertise testing")
    request = v1.InjectFaultRequest(
        kind=kind, request_id=request_id, after_tokens=after_tokens, duration_ms=duration_ms
    )
    try:
        call = probe.call(f"{TESTING}/InjectFault", request)
        if not call.ending.ok:
            name = v1.FaultKind.Name(kind)
            probe.skip(f"the engine does not inject {name}: {describe(call)}")
        probe.faulty = True
        yield
    finally:
        probe.faulty = False
        undo(probe, f"{TESTING}/ClearFaults", v1.ClearFaultsRequest())


@contextmanager
def reconfigured(
    probe: Probe, *, max_num_sequences: int | None = None
) -> Iterator[v1.ReconfigureResponse]:
    """While the block runs, max_num_sequences is the given number; without one,
    supports_priority is the opposite of what was declared.
    """
    if "testing" not in probe.declared.profiles:
        probe.skip("the engine does not advertise testing")
    generation = getattr(probe.declared.capabilities, "generation", v1.GenerationCapabilities())
    declared = generation.supports_priority
    change = v1.ReconfigureRequest(supports_priority=not declared)
    back = v1.ReconfigureRequest(supports_priority=declared)
    if max_num_sequences is not None:
        if not generation.HasField("max_num_sequences"):
            probe.skip("max_num_sequences is not reported, so it could not be restored")
        change = v1.ReconfigureRequest(max_num_sequences=max_num_sequences)
        back = v1.ReconfigureRequest(max_num_sequences=generation.max_num_sequences)
    try:
        call = probe.call(f"{TESTING}/Reconfigure", change)
        answer = call.messages[0] if call.ending.ok and call.messages else None
        if not isinstance(answer, v1.ReconfigureResponse):
            probe.skip(f"the engine did not reconfigure itself: {describe(call)}")
        yield answer
    finally:
        undo(probe, f"{TESTING}/Reconfigure", back)


def restart(probe: Probe) -> None:
    """Restart the target with the operator's hook and wait until it answers again."""
    hook = _hooks(probe).restart
    if hook is None:
        probe.skip("no restart hook is configured, or this budget uses none")
    hook()
    _wait_back(probe)


@contextmanager
def stopped(probe: Probe) -> Iterator[None]:
    """The target has been stopped by the operator's hook; it is started again after the block."""
    hooks = _hooks(probe)
    if hooks.stop is None or hooks.restart is None:
        probe.skip("no stop and restart hooks are configured, or this budget uses none")
    try:
        hooks.stop()
        yield
    finally:
        hooks.restart()
        _wait_back(probe)


@contextmanager
def busy(probe: Probe, tokens: int = LONG_TOKENS) -> Iterator[LiveCall]:
    """A request for `tokens` tokens is generating, with one seen, when the block begins; it is
    cancelled after the block.
    """
    if not probe.declared.generates:
        probe.skip("the engine does not generate")
    live = probe.start_generate(Case(long_request(probe.declared, tokens)))
    try:
        if not live.wait_event(1):
            call = probe.finish(live)
            probe.skip(f"a long request did not begin: {describe(call)}")
        yield live
    finally:
        live.cancel()
        live.wait_end(probe.pace.unary_limit())


def load(probe: Probe, *, per_rank: bool = False) -> v1.LoadInfo | None:
    """The load, from whichever service tells it; None when neither does."""
    request = v1.GetLoadRequest(include_per_rank=per_rank)
    services = [OBSERVABILITY, "openengine.v1.Control"]
    if "scheduling_load" not in probe.declared.profiles:
        services.reverse()
    for service in services:
        call = probe.call(f"{service}/GetLoad", request)
        if call.ending.ok and call.messages and isinstance(call.messages[0], v1.LoadInfo):
            return call.messages[0]
    return None


def idle(probe: Probe, baseline: int = 0) -> bool:
    """Whether running_requests falls to `baseline` within the 5 s that the protocol allows; True
    when the engine does not tell its load.
    """

    def at_rest() -> bool:
        info = load(probe)
        if info is None or not info.HasField("running_requests"):
            return True
        return info.running_requests <= baseline

    return probe.wait_until(at_rest, probe.pace.required(RELEASE_SECONDS) + probe.pace.unary)


def serving(probe: Probe, service: str = "") -> str:
    """What the standard health service says of `service`: SERVING, NOT_SERVING, ..., or the
    status code of a call that failed.
    """
    call = probe.call(HEALTH_CHECK, health.HealthCheckRequest(service=service))
    message = call.messages[0] if call.messages else None
    if not call.ending.ok or not isinstance(message, health.HealthCheckResponse):
        return call.ending.code.name
    return health.HealthCheckResponse.ServingStatus.Name(message.status)


def _hooks(probe: Probe) -> Hooks:
    return probe.connection.target.hooks


def _wait_back(probe: Probe) -> None:
    def answers() -> bool:
        call = undo(probe, "openengine.v1.Control/GetServerInfo", v1.GetServerInfoRequest())
        return call.ending.ok

    if not probe.wait_until(answers, probe.pace.unary_limit()):
        probe.skip("the engine did not answer again after its restart")


def undo(probe: Probe, method: str, request: Message) -> Transcript:
    """Make a call that no check judges, such as the way back out of a state, on a connection that
    a stopped run leaves alone. It is made again when no answer came in time: what all later checks
    see depends on it, and none of these calls does more the second time.
    """
    connection = probe.connection
    with Connection(connection.target, connection.routes) as own:
        call = own.call(METHODS[method], request, deadline=probe.pace.unary_limit())
        if call.ending.code is grpc.StatusCode.DEADLINE_EXCEEDED:
            call = own.call(METHODS[method], request, deadline=probe.pace.unary_limit())
    return call
