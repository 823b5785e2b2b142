"""Discovery calls as the checks need them: a message with the call that brought it, or a skip.

A read that fails says nothing about the row that needed it; the row about that RPC judges it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import grpc
from google.protobuf.message import Message

from conformance.checks.probe import Probe, describe
from conformance.wire.connection import Connection
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import health, v1
from oe_wire.services import METHODS

CHECK = "grpc.health.v1.Health/Check"
WATCH = "grpc.health.v1.Health/Watch"
INFERENCE = "openengine.v1.Inference"
CONTROL = "openengine.v1.Control"
DISCOVERY = "openengine.v1.OpenEngineDiscovery"
FIXED_SERVICES = (INFERENCE, CONTROL, DISCOVERY)
# An engine that serves more models than this is judged on its first ones.
MAX_MODELS = 16

EngineFacts = v1.EngineInfo | v1.ServerInfo
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Read(Generic[M]):
    """A message and the call that brought it."""

    message: M
    call: Transcript


def answer(call: Transcript, kind: type[M]) -> M | None:
    """The message of a unary call that ended OK, else None."""
    if not (call.ending.ok and call.messages):
        return None
    message = call.messages[0]
    return message if isinstance(message, kind) else None


def code(call: Transcript) -> str:
    """Name of the status that ended the call."""
    status: grpc.StatusCode = call.ending.code
    return str(status.name)


def call_on(probe: Probe, connection: Connection, name: str, request: Message) -> Transcript:
    """Make a call on a connection other than the probe's own; counted and judged like any call."""
    limit = probe.pace.unary_limit()
    probe.spending.requests += 1
    call = connection.call(METHODS[name], request, deadline=limit)
    probe.record(call)
    return call


def read(probe: Probe, name: str, request: Message, kind: type[M]) -> Read[M]:
    """Make a unary call; skip the case when it fails."""
    call = probe.call(name, request)
    message = answer(call, kind)
    if message is None:
        probe.skip(f"{name} gave no answer to judge: {describe(call)}")
    return Read(message, call)


def engine_facts(probe: Probe) -> Read[EngineFacts]:
    """EngineInfo, or ServerInfo on an engine without discovery."""
    if probe.declared.legacy:
        server = read(probe, "Control/GetServerInfo", v1.GetServerInfoRequest(), v1.ServerInfo)
        return Read(server.message, server.call)
    name = "OpenEngineDiscovery/GetEngineInfo"
    engine = read(probe, name, v1.GetEngineInfoRequest(), v1.EngineInfo)
    return Read(engine.message, engine.call)


def capabilities(probe: Probe, model: str = "") -> Read[v1.Capabilities]:
    """Capabilities of one model, or of the engine for the empty name."""
    request = v1.GetCapabilitiesRequest(model=model)
    return read(probe, "OpenEngineDiscovery/GetCapabilities", request, v1.Capabilities)


def model_info_rpc(declared: Declared) -> str:
    """The GetModelInfo to ask: discovery's, or Control's on an engine without discovery."""
    return f"{'Control' if declared.legacy else 'OpenEngineDiscovery'}/GetModelInfo"


def ask_model(probe: Probe, name: str) -> Transcript:
    """One GetModelInfo call, however it ends."""
    return probe.call(model_info_rpc(probe.declared), v1.GetModelInfoRequest(model=name))


def supported_models(declared: Declared) -> tuple[str, ...]:
    """Names that the engine listed at the start of the run, without empty ones and repetitions."""
    engine = cast("EngineFacts | None", declared.engine)
    listed = () if engine is None else engine.supported_models
    return tuple(dict.fromkeys(name for name in listed if name))[:MAX_MODELS]


def model_infos(probe: Probe) -> tuple[Read[v1.ModelInfo], ...]:
    """ModelInfo of every supported model that gives one."""
    calls = [ask_model(probe, name) for name in supported_models(probe.declared)]
    infos = [(answer(call, v1.ModelInfo), call) for call in calls]
    return tuple(Read(info, call) for info, call in infos if info is not None)


def aliases(declared: Declared) -> tuple[str, ...]:
    """Aliases of the tested model, without empty ones and its own name."""
    if declared.model is None:
        return ()
    own = {"", declared.model_name, declared.model.served_model_name}
    return tuple(dict.fromkeys(a for a in declared.model.served_model_aliases if a not in own))


def advertised_services(scope: v1.Capabilities) -> tuple[str, ...]:
    """Every service that some profile names, without repetitions, in order of appearance."""
    named = (service for profile in scope.profiles for service in profile.services)
    return tuple(dict.fromkeys(name for name in named if name))


def check_health(probe: Probe, service: str) -> Transcript:
    """One Health/Check call, however it ends."""
    return probe.call(CHECK, health.HealthCheckRequest(service=service))


def serving_status(call: Transcript) -> str:
    """Name of the status that Check answered, or how the call ended instead."""
    message = answer(call, health.HealthCheckResponse)
    return describe(call) if message is None else status_name(message.status)


def status_name(number: int) -> str:
    """Name of a ServingStatus; the number for one the wire does not know."""
    value = health.HealthCheckResponse.ServingStatus.DESCRIPTOR.values_by_number.get(number)
    return str(number) if value is None else str(value.name)
