"""The RPCs that every core engine serves, and that asking for facts costs no inference."""

from __future__ import annotations

from dataclasses import dataclass

import grpc

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import (
    WATCH,
    answer,
    ask_model,
    check_health,
)
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.strategies import simple_request
from conformance.wire.transcript import Transcript
from oe_wire import health, v1

DISCOVERY_CALLS = 50
CALLS_AT_ONCE = 10
# How long requests of earlier checks may take to leave the load report (ABORT-012 allows 5 s).
DRAIN_SECONDS = 10.0


@check(
    "OE-CORE-DISC-001",
    advice="Register OpenEngineDiscovery and grpc.health.v1.Health with these RPCs on the server.",
)
def discovery_served(probe: Probe, _: Case) -> None:
    """Every RPC of discovery and of standard health is implemented."""
    _implemented(probe, probe.call("OpenEngineDiscovery/GetEngineInfo", v1.GetEngineInfoRequest()))
    request = v1.GetModelInfoRequest(model=probe.declared.model_name)
    _implemented(probe, probe.call("OpenEngineDiscovery/GetModelInfo", request))
    _implemented(
        probe, probe.call("OpenEngineDiscovery/GetCapabilities", v1.GetCapabilitiesRequest())
    )
    _implemented(probe, check_health(probe, ""))
    watch = probe.start(WATCH, health.HealthCheckRequest())
    watch.wait_event(1, timeout=probe.pace.unary_limit())
    watch.cancel()
    _implemented(probe, probe.finish(watch))


@check(
    "OE-CORE-DISC-002",
    advice="Keep serving Inference.Generate and Control's GetServerInfo, GetModelInfo, Health and "
    "Abort under their v0.1.0 names; a role that cannot generate answers FAILED_PRECONDITION.",
)
def released_services_served(probe: Probe, _: Case) -> None:
    """Every RPC that v0.1.0 engines must have is implemented."""
    _implemented(probe, probe.call("Control/GetServerInfo", v1.GetServerInfoRequest()))
    request = v1.GetModelInfoRequest(model=probe.declared.model_name)
    _implemented(probe, probe.call("Control/GetModelInfo", request))
    _implemented(probe, probe.call("Control/Health", v1.HealthRequest()))
    _implemented(probe, probe.call("Control/Abort", v1.AbortRequest(request_id=probe.fresh_id())))
    _implemented(probe, probe.generate(Case(simple_request(probe.declared))))


@check(
    "OE-CORE-DISC-023",
    advice="Answer discovery from memory: no request may reach the scheduler, and discovery calls "
    "are not counted as running or queued requests.",
)
def discovery_leaves_load(probe: Probe, _: Case) -> None:
    """Running and queued requests stay at zero during and after fifty discovery calls."""
    if _load(probe) is None:
        _health_unmoved(probe)
        return
    if not probe.wait_until(lambda: _load(probe) == IDLE, probe.pace.required(DRAIN_SECONDS)):
        probe.skip("the engine is busy with other requests, so its load says nothing")
    for _round in range(DISCOVERY_CALLS // CALLS_AT_ONCE):
        _discover(probe)
    after = _load(probe)
    if after is not None and after != IDLE:
        probe.fail(f"{IDLE} after {DISCOVERY_CALLS} discovery calls", str(after))


@dataclass(frozen=True, slots=True)
class _Load:
    """What an engine says about its queue; an unreported count is 0."""

    running: int
    queued: int

    def __str__(self) -> str:
        return f"{self.running} running and {self.queued} queued requests"


IDLE = _Load(0, 0)


def _load(probe: Probe) -> _Load | None:
    """The reported load, None when the engine reports no count."""
    info = answer(probe.call("Control/GetLoad", v1.GetLoadRequest()), v1.LoadInfo)
    if info is None or not (info.HasField("running_requests") or info.HasField("queued_requests")):
        return None
    return _Load(info.running_requests, info.queued_requests)


def _discover(probe: Probe) -> None:
    """Ten discovery calls at once, with a look at the load while they may still run."""
    names = ("GetEngineInfo", "GetModelInfo", "GetCapabilities")
    model = probe.declared.model_name
    requests = (
        v1.GetEngineInfoRequest(),
        v1.GetModelInfoRequest(model=model),
        v1.GetCapabilitiesRequest(model=model),
    )
    running = [
        probe.start(f"OpenEngineDiscovery/{names[i % 3]}", requests[i % 3])
        for i in range(CALLS_AT_ONCE)
    ]
    load = _load(probe)
    for call in running:
        probe.finish(call)
    if load is not None and load != IDLE:
        probe.fail(f"{IDLE} during discovery calls", str(load))


def _health_unmoved(probe: Probe) -> None:
    """Without a load report: Control.Health tells the same before and after."""
    before = _health(probe)
    for _round in range(DISCOVERY_CALLS // CALLS_AT_ONCE):
        _discover_quietly(probe)
    after = _health(probe)
    if before != after:
        probe.fail("the same Control.Health before and after discovery calls", "another state")


def _discover_quietly(probe: Probe) -> None:
    for _call in range(CALLS_AT_ONCE):
        ask_model(probe, probe.declared.model_name)


def _health(probe: Probe) -> list[tuple[str, int]]:
    """Names and states of Control.Health; its texts may hold times and counts."""
    call = probe.call("Control/Health", v1.HealthRequest())
    message = answer(call, v1.HealthResponse)
    if message is None:
        probe.skip("neither GetLoad nor Control.Health gives a reading of the load")
    return [("", message.state), *((item.name, item.state) for item in message.checks)]


def _implemented(probe: Probe, call: Transcript) -> None:
    if call.ending.code is grpc.StatusCode.UNIMPLEMENTED:
        probe.fail(f"{call.method} to be served", "UNIMPLEMENTED", call)
