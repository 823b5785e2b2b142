"""Addresses in discovery answers: hosts that a client can dial, and services found behind them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import (
    CHECK,
    advertised_services,
    answer,
    call_on,
    capabilities,
    engine_facts,
    serving_status,
    status_name,
)
from conformance.checks.probe import Probe
from conformance.errors import ConfigError
from conformance.model.case import Case
from conformance.wire.connection import Connection
from conformance.wire.target import Target, parse_address
from conformance.wire.tls import Tls
from conformance.wire.transcript import Transcript
from oe_wire import health, v1

HEALTH_SERVICE = "grpc.health.v1.Health"


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """An advertised address, where it stood, and the call that brought it."""

    where: str
    host: str
    port: int
    call: Transcript


@check(
    "OE-CORE-DISC-018",
    advice="Advertise the address that clients reach, not the address that the socket is bound to.",
)
def endpoints_routable(probe: Probe, _: Case) -> None:
    """Every advertised endpoint has a host that can be dialled and a port in 1..65535.

    An engine that advertises none keeps the rule: it was asked and misleads nobody.
    """
    for endpoint in (*_engine_endpoints(probe), *_kv_event_endpoints(probe)):
        if _wildcard(endpoint.host):
            probe.fail(f"a routable host in {endpoint.where}", repr(endpoint.host), endpoint.call)
        if not 1 <= endpoint.port <= 65535:
            probe.fail(f"a port in 1..65535 in {endpoint.where}", str(endpoint.port), endpoint.call)


def _engine_endpoints(probe: Probe) -> Iterator[_Endpoint]:
    facts = engine_facts(probe)
    for item in facts.message.kv_connector.local_endpoints:
        yield _Endpoint("kv_connector.local_endpoints", item.host, item.port, facts.call)
    if isinstance(facts.message, v1.EngineInfo):
        for service in facts.message.service_endpoints:
            yield _Endpoint("service_endpoints", service.host, service.port, facts.call)


def _kv_event_endpoints(probe: Probe) -> Iterator[_Endpoint]:
    call = probe.call("Control/GetKvEventSources", v1.GetKvEventSourcesRequest())
    message = answer(call, v1.GetKvEventSourcesResponse)
    for source in () if message is None else message.sources:
        if source.HasField("endpoint_addr"):
            address = source.endpoint_addr
            yield _Endpoint("sources.endpoint_addr", address.host, address.port, call)


def _wildcard(host: str) -> bool:
    """Whether the host is empty or stands for every address of a machine, however spelled."""
    bare = host.strip().removeprefix("[").removesuffix("]")
    if bare in {"", "*"}:
        return True
    try:
        return ipaddress.ip_address(bare).is_unspecified
    except ValueError:
        return False


@check(
    "OE-CORE-DISC-024",
    advice="List each advertised service once in service_endpoints, at a listener whose Health "
    "knows that service; or leave the list empty when one listener serves them all.",
)
def service_endpoints_serve(probe: Probe, _: Case) -> None:
    """A non-empty service_endpoints names every advertised service once, where it is served."""
    facts = engine_facts(probe)
    if not isinstance(facts.message, v1.EngineInfo) or not facts.message.service_endpoints:
        probe.skip("service_endpoints is empty: every service is on one listener")
    listed = [endpoint.service for endpoint in facts.message.service_endpoints]
    advertised = advertised_services(capabilities(probe).message)
    for service in advertised:
        if listed.count(service) != 1:
            probe.fail(
                f"{service} exactly once in service_endpoints",
                f"{listed.count(service)} times",
                facts.call,
            )
    _check_each(probe, facts.message.service_endpoints, advertised)


def _check_each(
    probe: Probe, endpoints: Iterable[v1.ServiceEndpoint], advertised: Iterable[str]
) -> None:
    wanted = set(advertised) - {HEALTH_SERVICE}
    for endpoint in endpoints:
        if endpoint.service not in wanted:
            continue
        call = _check_at(probe, endpoint)
        message = answer(call, health.HealthCheckResponse)
        if message is None or status_name(message.status) not in {"SERVING", "NOT_SERVING"}:
            probe.fail(
                f"Health/Check of {endpoint.service} answered SERVING or NOT_SERVING at "
                f"{endpoint.host}:{endpoint.port}",
                serving_status(call),
                call,
            )


def _check_at(probe: Probe, endpoint: v1.ServiceEndpoint) -> Transcript:
    """Health/Check on the endpoint itself. No connection is an answer too: nothing serves there."""
    try:
        target = _target(probe.connection.target, endpoint)
    except ConfigError as error:
        probe.fail(f"an address for {endpoint.service} that can be dialled", str(error))
    with Connection(target) as connection:
        request = health.HealthCheckRequest(service=endpoint.service)
        return call_on(probe, connection, CHECK, request)


def _target(target: Target, endpoint: v1.ServiceEndpoint) -> Target:
    """The engine's target moved to one endpoint; `tls` absent means as for the engine itself.

    Raises ConfigError for a host or port that makes no address.
    """
    host = endpoint.host
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    address = parse_address(f"{host}:{endpoint.port}", source="service_endpoints")
    tls = target.tls
    if endpoint.HasField("tls"):
        tls = (tls or Tls()) if endpoint.tls else None
    return replace(target, address=address, control=None, tls=tls)
