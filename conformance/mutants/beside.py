"""Engines that advertise more than the suite knows: right ones, and ones that break 1.0 by it.

Behaviours put together from parts; an engine that only advertises more must stay conformant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc

from conformance.mutants.behaviours import answered, edited, refusal, refused, when
from conformance.mutants.methods import CAPABILITIES, CHECK, GENERATE, RECONFIGURE, WATCH_LOAD
from conformance.mutants.mutant import Answers, Behaviour, Exchange, Mutant, Refused
from oe_wire import health, v1
from oe_wire.services import METHODS

SESSIONS = "openengine.v1.OpenEngineSessions"
VENDOR = "com.example.fast_path"
VENDOR_SERVICE = "com.example.FastPath"
HEALTH_LIST = "grpc.health.v1.Health/List"
SERVING = health.HealthCheckResponse(status=health.HealthCheckResponse.SERVING)


def _profile(name: str, major: int, minor: int, *services: str) -> Behaviour:
    """Capabilities with one more entry; one of the same name and major is replaced."""

    def edit(scope: Any) -> None:
        others = [item for item in scope.profiles if (item.name, item.major) != (name, major)]
        models = [model for item in scope.profiles[:1] for model in item.models]
        served = [service for item in scope.profiles[:1] for service in item.services]
        del scope.profiles[:]
        scope.profiles.extend(others)
        scope.profiles.add(
            name=name, major=major, minor=minor, models=models, services=services or served
        )

    return edited(edit)


def _healthy(service: str) -> Behaviour:
    """The health service knows one more name."""
    return when(lambda request: request.service == service, answered(lambda _: SERVING))


def _listed(service: str) -> Behaviour:
    """Health/List has one more name."""
    return edited(lambda message: message.statuses[service].CopyFrom(SERVING))


# The three kinds of more. A vendor's service is known to the health service.
LATER_MINOR: Mapping[str, Behaviour] = {CAPABILITIES: _profile("core", 1, 4)}
SECOND_MAJOR: Mapping[str, Behaviour] = {CAPABILITIES: _profile("core", 2, 0)}
WITH_VENDOR: Mapping[str, Behaviour] = {
    CAPABILITIES: _profile(VENDOR, 1, 0, VENDOR_SERVICE),
    CHECK: _healthy(VENDOR_SERVICE),
    HEALTH_LIST: _listed(VENDOR_SERVICE),
}


def _off_refused(name: str) -> Behaviour:
    """A sampling field at the value that 1.0 calls off is refused."""

    def spelt_out(request: Any) -> bool:
        return bool(request.sampling.HasField(name) and getattr(request.sampling, name) == 0)

    details = f"{name} must be above 0"
    code = grpc.StatusCode.INVALID_ARGUMENT
    return when(spelt_out, refused(refusal(code, "INVALID_ARGUMENT", details)))


def _opens_sessions(scope: Any) -> None:
    scope.profiles.add(name="sessions", major=1, services=[SESSIONS])
    scope.sessions.modes.append(v1.SESSION_MODE_APPEND)


def _opened(request: Any) -> v1.OpenSessionResponse:
    session = v1.SessionInfo(
        session_id=request.session_id,
        model=request.model,
        mode=v1.SESSION_MODE_APPEND,
        state=v1.SESSION_STATE_OPEN,
    )
    return v1.OpenSessionResponse(session=session)


def _turn(prefix: str) -> Behaviour:
    """A turn is a Generate call; the engine knows it under the caller's id with the prefix."""

    async def behaviour(exchange: Exchange) -> Answers:
        request = exchange.request.request
        own = request.request_id
        request.request_id = prefix + own
        method = METHODS[GENERATE]
        inner = Exchange(
            method, request, exchange.metadata, exchange.relay, exchange.state, exchange.address
        )
        exchange.opened.append(inner.upstream())
        async for response in exchange.opened[-1]:
            response.request_id = own
            yield response

    return behaviour


def _sessions(prefix: str) -> dict[str, Behaviour]:
    unknown = refusal(grpc.StatusCode.NOT_FOUND, "REQUEST_NOT_FOUND", "no such session")
    return {
        CAPABILITIES: edited(_opens_sessions),
        CHECK: _healthy(SESSIONS),
        HEALTH_LIST: _listed(SESSIONS),
        f"{SESSIONS}/OpenSession": answered(_opened),
        f"{SESSIONS}/GenerateTurn": _turn(prefix),
        f"{SESSIONS}/GetSession": refused(unknown),
        f"{SESSIONS}/CloseSession": answered(lambda _: v1.CloseSessionResponse()),
    }


async def _reconfigured(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        exchange.state["changes"] = exchange.state.get("changes", 0) + 1
        yield response


async def _ends_on_change(exchange: Exchange) -> Answers:
    """The stream ends with its first message after a reconfiguration."""
    before = exchange.state.get("changes", 0)
    async for response in exchange.upstream():
        if exchange.state.get("changes", 0) > before:
            raise Refused(grpc.StatusCode.UNAVAILABLE, "the capabilities have changed")
        yield response


def _reconnects(scope: Any) -> None:
    scope.change_notices[:] = [v1.CAPABILITY_CHANGE_NOTICE_RECONNECT]


# Engines that are right: the check of the named row, and all others, stay green on them.
RIGHT = (
    Mutant("later-minor", "OE-PROF-001", "Core 1.4 is advertised.", LATER_MINOR),
    Mutant("second-major", "OE-PROF-003", "Core 2 stands beside core 1.", SECOND_MAJOR),
    Mutant("vendor-profile", "OE-PROF-004", "A vendor's profile is advertised.", WITH_VENDOR),
    Mutant("sessions", "OE-CORE-COMPAT-003", "Turns are known to Abort.", _sessions("")),
    Mutant(
        "reconnect-given",
        "OE-CORE-CAP-016",
        "A change ends the streams of load.",
        {
            CAPABILITIES: edited(_reconnects),
            RECONFIGURE: _reconfigured,
            WATCH_LOAD: _ends_on_change,
        },
    ),
)

MUTANTS = (
    Mutant(
        "minor-tightens",
        "OE-PROF-001",
        "From core 1.4 on a top_k of zero, which meant off, is an error.",
        {**LATER_MINOR, GENERATE: _off_refused("top_k")},
        frozenset({"OE-CORE-GEN-018"}),
    ),
    Mutant(
        "second-major-rules-both",
        "OE-PROF-003",
        "Core 2 has no min_p of zero, and core 1 is served by its code.",
        {**SECOND_MAJOR, GENERATE: _off_refused("min_p")},
        frozenset({"OE-CORE-GEN-019"}),
    ),
    Mutant(
        "vendor-changes-standard",
        "OE-PROF-004",
        "A vendor's sampler takes over all requests, and knows no penalty of zero.",
        {**WITH_VENDOR, GENERATE: _off_refused("presence_penalty")},
    ),
    Mutant(
        "vendor-reuses-service",
        "OE-PROF-004",
        "A vendor's profile claims to be carried by a standard service.",
        {CAPABILITIES: _profile(VENDOR, 1, 0, "openengine.v1.Inference")},
    ),
    Mutant(
        "turns-in-their-own-namespace",
        "OE-CORE-COMPAT-003",
        "Turns of sessions run under internal ids, which Abort does not know.",
        _sessions("turn-"),
    ),
)
