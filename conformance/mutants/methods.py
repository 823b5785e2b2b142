"""Full names of the RPCs that mutants change."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.mutants.mutant import Behaviour
from oe_wire.services import METHODS

GENERATE = "openengine.v1.Inference/Generate"
ABORT = "openengine.v1.Control/Abort"
CONTROL_HEALTH = "openengine.v1.Control/Health"
SERVER_INFO = "openengine.v1.Control/GetServerInfo"
ENGINE_INFO = "openengine.v1.OpenEngineDiscovery/GetEngineInfo"
CAPABILITIES = "openengine.v1.OpenEngineDiscovery/GetCapabilities"
CONTROL_MODEL_INFO = "openengine.v1.Control/GetModelInfo"
MODEL_INFO = "openengine.v1.OpenEngineDiscovery/GetModelInfo"
CHECK = "grpc.health.v1.Health/Check"
WATCH = "grpc.health.v1.Health/Watch"
GET_LOAD = "openengine.v1.OpenEngineObservability/GetLoad"
CONTROL_GET_LOAD = "openengine.v1.Control/GetLoad"
WATCH_LOAD = "openengine.v1.OpenEngineObservability/WatchLoad"
ADMIN_STATE = "openengine.v1.OpenEngineAdmin/GetAdminState"
PAUSE = "openengine.v1.OpenEngineAdmin/PauseGeneration"
RESUME = "openengine.v1.OpenEngineAdmin/ResumeGeneration"
RESET_CACHE = "openengine.v1.OpenEngineAdmin/ResetCache"
INJECT_FAULT = "openengine.v1.OpenEngineTesting/InjectFault"
CLEAR_FAULTS = "openengine.v1.OpenEngineTesting/ClearFaults"
RECONFIGURE = "openengine.v1.OpenEngineTesting/Reconfigure"

# Pairs that must agree: a lie that is told in one of them only breaks another row.
BOTH_INFOS = (ENGINE_INFO, SERVER_INFO)
BOTH_MODEL_INFOS = (MODEL_INFO, CONTROL_MODEL_INFO)
BOTH_LOADS = (GET_LOAD, CONTROL_GET_LOAD)
EVERY_RPC = tuple(name for name in METHODS if name.startswith("openengine.v1."))


def each(methods: Iterable[str], behaviour: Behaviour) -> dict[str, Behaviour]:
    """The same behaviour for several RPCs."""
    return dict.fromkeys(methods, behaviour)
