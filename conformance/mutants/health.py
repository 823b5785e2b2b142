"""Mutants of grpc.health.v1 and of Control.Health."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from conformance.mutants.behaviours import answered, edited, forgiven, refused, when
from conformance.mutants.methods import CHECK, CONTROL_HEALTH, WATCH
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from oe_wire import health

Response = health.HealthCheckResponse
# Longer than a first message may take on a loaded machine, shorter than any call's limit.
LATE_SECONDS = 9.0


def _overall(request: Any) -> bool:
    return not request.service


def _control(request: Any) -> bool:
    return bool(request.service == "openengine.v1.Control")


NOT_FOUND = refused(Refused(grpc.StatusCode.NOT_FOUND, "unknown service"))
SERVING = answered(lambda _: Response(status=Response.SERVING))


async def _first_late(exchange: Exchange) -> Answers:
    first = True
    async for response in exchange.upstream():
        if first and response.status != Response.SERVICE_UNKNOWN:
            await asyncio.sleep(LATE_SECONDS)
        first = False
        yield response


async def _ends_unknown(exchange: Exchange) -> Answers:
    """The watch of a name that nobody knows is over after its first message."""
    async for response in exchange.upstream():
        yield response
        if response.status == Response.SERVICE_UNKNOWN:
            return


async def _unknown_refused(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        if response.status == Response.SERVICE_UNKNOWN:
            raise Refused(grpc.StatusCode.NOT_FOUND, "unknown service")
        yield response


async def _starts_unknown(exchange: Exchange) -> Answers:
    first = True
    async for response in exchange.upstream():
        if first and response.status != Response.SERVICE_UNKNOWN:
            yield Response(status=Response.UNKNOWN)
        first = False
        yield response


def _check_twice(message: Any) -> None:
    message.checks.add().CopyFrom(message.checks[0])


def _state_unset(message: Any) -> None:
    message.ClearField("state")


MUTANTS = (
    Mutant(
        "overall-health-unknown",
        "OE-CORE-HEALTH-001",
        "Services are registered by name, and the empty name is not.",
        {CHECK: when(_overall, NOT_FOUND)},
        # Watch and List know the name, and Inference is SERVING.
        frozenset({"OE-CORE-HEALTH-010", "OE-CORE-HEALTH-019", "OE-CORE-HEALTH-020"}),
    ),
    Mutant(
        "control-health-unknown",
        "OE-CORE-HEALTH-002",
        "Only the data plane is registered with the health service.",
        {CHECK: when(_control, NOT_FOUND)},
        # Watch and List know the name.
        frozenset({"OE-CORE-HEALTH-019", "OE-CORE-HEALTH-020"}),
    ),
    Mutant(
        "any-service-serving",
        "OE-CORE-HEALTH-003",
        "Check answers SERVING whatever the name.",
        {CHECK: forgiven(grpc.StatusCode.NOT_FOUND, SERVING)},
    ),
    Mutant(
        "watch-starts-late",
        "OE-CORE-HEALTH-004",
        "A watch polls, and sends its first message after the first interval.",
        {WATCH: _first_late},
    ),
    Mutant(
        "watch-unknown-refused",
        "OE-CORE-HEALTH-005",
        "A watch of an unknown name is refused as Check refuses it.",
        {WATCH: _unknown_refused},
    ),
    Mutant(
        "watch-unknown-ends",
        "OE-CORE-HEALTH-005",
        "A watch of an unknown name ends, so that a later registration is missed.",
        {WATCH: _ends_unknown},
    ),
    Mutant(
        "watch-starts-unknown",
        "OE-CORE-HEALTH-008",
        "A watch begins with UNKNOWN before the first poll.",
        {WATCH: _starts_unknown},
    ),
    Mutant(
        "health-check-twice",
        "OE-CORE-HEALTH-013",
        "Two replicas report a check of the same name.",
        {CONTROL_HEALTH: edited(_check_twice)},
    ),
    Mutant(
        "health-state-unset",
        "OE-CORE-HEALTH-013",
        "The state of the engine is left at its default.",
        {CONTROL_HEALTH: edited(_state_unset)},
        # No state is none of those that go with the standard status.
        frozenset({"OE-CORE-HEALTH-012", "OE-CORE-HEALTH-016"}),
    ),
)
