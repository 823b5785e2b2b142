"""Routes to services that the engine says lie on other listeners (EngineInfo.service_endpoints)."""

from __future__ import annotations

from conformance.errors import ConfigError
from conformance.wire.declared import Declared
from conformance.wire.target import Target, parse_address

_WILDCARDS = frozenset({"", "0.0.0.0", "::", "[::]", "*"})  # noqa: S104 - only compared with


def routes_of(declared: Declared, target: Target) -> dict[str, str]:
    """Address by service name, for Connection; empty when everything is on one listener.

    An entry that cannot be dialled (no service, a wildcard host, a bad port) is left out: the
    service is then asked for at the target itself, and a check judges the entry. Raises
    ConfigError for an entry whose `tls` is not what the target is reached with.
    """
    routes: dict[str, str] = {}
    if declared.engine_info is None:
        return routes
    for endpoint in declared.engine_info.service_endpoints:
        address = _address(endpoint.host, endpoint.port)
        if not endpoint.service or address is None:
            continue
        if endpoint.HasField("tls") and endpoint.tls != (target.tls is not None):
            said, used = ("with", "without") if endpoint.tls else ("without", "with")
            raise ConfigError(
                f"{endpoint.service} is announced {said} TLS, the target is reached {used}",
                source="service_endpoints",
                where=f"{endpoint.host}:{endpoint.port}",
                expected="--tls" if endpoint.tls else "no --tls",
            )
        routes.setdefault(endpoint.service, address)
    return routes


def _address(host: str, port: int) -> str | None:
    if host in _WILDCARDS:
        return None
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    try:
        return parse_address(f"{bracketed}:{port}", source="service_endpoints")
    except ConfigError:
        return None
