"""Which listener a call goes to."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.wire.target import Target
from oe_wire import v1
from oe_wire.services import METHODS
from tests.conformance.wire.servers import (
    GENERATE,
    LONG,
    SERVER_INFO,
    Connect,
    Serve,
)


def test_control_listener_and_routes(serve: Serve, connect: Connect) -> None:
    """The data plane goes to the target or its route, everything else to the control listener."""

    def named(name: str) -> Any:
        return {
            "Control": {"GetServerInfo": lambda r, c: v1.ServerInfo(engine_name=name)},
            "Inference": {"Generate": lambda r, c: iter([v1.GenerateResponse(request_id=name)])},
        }

    main, control, other = (serve(named(name)) for name in ("main", "control", "other"))
    routes = {"openengine.v1.Inference": other, "openengine.v1.Control": other}

    def names(target: Target, routes: dict[str, str]) -> tuple[str, str]:
        connection = connect(target, routes=routes)
        info = connection.call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=LONG).messages[0]
        answer = connection.call(GENERATE, v1.GenerateRequest(), deadline=LONG).messages[0]
        assert isinstance(info, v1.ServerInfo)
        assert isinstance(answer, v1.GenerateResponse)
        return info.engine_name, answer.request_id

    assert names(Target(main), {}) == ("main", "main")
    assert names(Target(main, control=control), {}) == ("control", "main")
    assert names(Target(main), routes) == ("other", "other")
    assert names(Target(main, control=control), routes) == ("control", "other")


@pytest.mark.parametrize(
    ("method", "listener"),
    [
        ("openengine.v1.Inference/Generate", "data"),
        ("openengine.v1.OpenEngineTasks/Embed", "data"),
        ("openengine.v1.OpenEngineEncoder/Encode", "data"),
        ("openengine.v1.OpenEngineSessions/GenerateTurn", "data"),
        ("openengine.v1.OpenEngineKv/Prefill", "data"),
        ("openengine.v1.OpenEngineOrchestration/Execute", "data"),
        ("openengine.v1.Control/Abort", "control"),
        ("openengine.v1.OpenEngineSessions/OpenSession", "control"),
        ("openengine.v1.OpenEngineKv/ReleaseKvSession", "control"),
        ("grpc.health.v1.Health/Check", "control"),
    ],
)
def test_data_plane(method: str, listener: str, connect: Connect) -> None:
    """The data plane is the list of OE-CORE-META-011."""
    connection = connect(Target("data", control="control"))
    assert connection.address_of(METHODS[method]) == listener


def test_unix_socket(serve: Serve, connect: Connect, tmp_path: Any) -> None:
    """A Unix socket is a target like any other."""
    address = serve(
        {"Control": {"GetServerInfo": lambda r, c: v1.ServerInfo()}},
        listen=f"unix:{tmp_path}/engine.sock",
    )
    assert connect(address).call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=LONG).ending.ok
