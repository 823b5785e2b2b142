"""Calls that change nothing and that a target must serve: to repeat with other metadata."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.message import Message

from conformance.wire.declared import Declared
from oe_wire import health, v1

# Begins no id that a check makes, so Abort finds nothing.
UNUSED_ID = "oe-conform-never-used"
INFERENCE = "openengine.v1.Inference"


def plain_calls(declared: Declared) -> Mapping[str, Message]:
    """A request for each unary RPC outside the data plane that reads only, by full RPC name.

    Core and the advertised profiles; on a v0.1.0 engine what every one of them serves.
    """
    control: dict[str, Message] = {
        "Control/GetServerInfo": v1.GetServerInfoRequest(),
        "Control/GetModelInfo": v1.GetModelInfoRequest(model=declared.model_name),
        "Control/Health": v1.HealthRequest(),
        "Control/Abort": v1.AbortRequest(request_id=UNUSED_ID),
    }
    if not declared.legacy:
        control |= {
            "OpenEngineDiscovery/GetCapabilities": v1.GetCapabilitiesRequest(),
            "OpenEngineDiscovery/GetEngineInfo": v1.GetEngineInfoRequest(),
            "OpenEngineDiscovery/GetModelInfo": v1.GetModelInfoRequest(model=declared.model_name),
        }
    if "scheduling_load" in declared.profiles:
        control["OpenEngineObservability/GetLoad"] = v1.GetLoadRequest()
        control["Control/GetLoad"] = v1.GetLoadRequest()
    if "adapters" in declared.profiles:
        control["OpenEngineAdapters/ListLoras"] = v1.ListLorasRequest()
    if "admin" in declared.profiles:
        control["OpenEngineAdmin/GetAdminState"] = v1.GetAdminStateRequest()
    calls = {f"openengine.v1.{name}": request for name, request in control.items()}
    if not declared.legacy:
        calls["grpc.health.v1.Health/Check"] = health.HealthCheckRequest(service=INFERENCE)
    return calls
