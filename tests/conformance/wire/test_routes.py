from __future__ import annotations

from typing import Any

import pytest

from conformance.errors import ConfigError
from conformance.wire.declared import Declared, TargetClass
from conformance.wire.routes import routes_of
from conformance.wire.target import Target
from conformance.wire.tls import Tls
from oe_wire import v1

INFERENCE = "openengine.v1.Inference"


def declared(*endpoints: dict[str, Any]) -> Declared:
    listed = [v1.ServiceEndpoint(**endpoint) for endpoint in endpoints]
    return Declared(
        TargetClass.PROFILE_AWARE, "v0.1.0", engine_info=v1.EngineInfo(service_endpoints=listed)
    )


def test_endpoints_become_routes() -> None:
    """Each announced service has the address of its endpoint; the first of two counts."""
    routes = routes_of(
        declared(
            {"service": INFERENCE, "host": "a.example", "port": 5},
            {"service": INFERENCE, "host": "b.example", "port": 5},
            {"service": "openengine.v1.Control", "host": "::1", "port": 6, "tls": False},
        ),
        Target("dns:///c.example:1"),
    )
    assert routes == {
        INFERENCE: "dns:///a.example:5",
        "openengine.v1.Control": "ipv6:[::1]:6",
    }


@pytest.mark.parametrize(
    "endpoint",
    [
        {"service": INFERENCE, "host": "0.0.0.0", "port": 5},
        {"service": INFERENCE, "host": "::", "port": 5},
        {"service": INFERENCE, "host": "", "port": 5},
        {"service": INFERENCE, "host": "a b", "port": 5},
        {"service": INFERENCE, "host": "a.example", "port": 0},
        {"service": INFERENCE, "host": "a.example", "port": 65536},
        {"service": "", "host": "a.example", "port": 5},
    ],
)
def test_endpoints_that_cannot_be_dialled(endpoint: dict[str, Any]) -> None:
    """A useless entry makes no route; judging it is a check's business."""
    assert routes_of(declared(endpoint), Target("dns:///c.example:1")) == {}


def test_no_engine_info() -> None:
    """A legacy engine has no endpoints."""
    assert routes_of(Declared(TargetClass.LEGACY, "v0.1.0"), Target("dns:///c.example:1")) == {}


@pytest.mark.parametrize(("tls", "says"), [(None, "expected --tls"), (Tls(), "expected no --tls")])
def test_other_security_than_the_target(tls: Tls | None, says: str) -> None:
    """An endpoint that needs another kind of connection is named with the option to change."""
    endpoint = {"service": INFERENCE, "host": "a.example", "port": 5, "tls": tls is None}
    with pytest.raises(ConfigError, match=f"a.example:5: {INFERENCE} is announced .*{says}"):
        routes_of(declared(endpoint), Target("dns:///c.example:1", tls=tls))
