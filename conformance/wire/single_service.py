"""Method paths of the first drafts, whose one service held what Inference and Control hold now."""

from __future__ import annotations

from oe_wire import v1
from oe_wire.services import Method

SINGLE = "openengine.v1.OpenEngine"
# The same messages with the same numbers, under the names of today's services.
_MOVED = frozenset({"openengine.v1.Inference", "openengine.v1.Control"})
_RENAMED = {"GetServerInfo": "GetEngineInfo"}
# EngineInfo's fields 1 to 10 had today's numbers.
SINGLE_ENGINE_INFO = Method(
    SINGLE, "GetEngineInfo", v1.GetEngineInfoRequest, v1.EngineInfo, server_streaming=False
)


def single_path(method: Method) -> str:
    """The HTTP/2 path of an RPC on such an engine; what it did not have keeps its own path."""
    if method.service not in _MOVED:
        return method.path
    return f"/{SINGLE}/{_RENAMED.get(method.name, method.name)}"
