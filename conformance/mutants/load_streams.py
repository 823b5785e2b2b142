"""What mutants of load streams are made of: numbers that stay right, limits, and clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from conformance.mutants.methods import CAPABILITIES
from conformance.mutants.mutant import Answers, Behaviour, Exchange
from oe_wire import v1
from oe_wire.services import METHODS

WATCH_LOAD = "openengine.v1.OpenEngineObservability/WatchLoad"
GET_LOAD = "openengine.v1.OpenEngineObservability/GetLoad"
NANOS_PER_MS = 1_000_000

# What is sent in place of one response: none, itself, or several.
Replace = Callable[[Any], Iterable[Any]]


def kind(response: Any) -> str:
    """`settings`, `snapshot`, `heartbeat` or `error`."""
    return str(response.WhichOneof("event"))


class Numbers:
    """Numbers a changed stream as a right engine would number it."""

    def __init__(self) -> None:
        self._last = 0
        self._snapshot = 0

    def put(self, response: Any) -> Any:
        """The response with its number; coalesced_events must be what was lost before it."""
        self._last += response.coalesced_events + 1
        response.sequence_number = self._last
        if kind(response) == "snapshot":
            self._snapshot = self._last
        elif kind(response) == "heartbeat":
            response.heartbeat.last_snapshot_sequence_number = self._snapshot
        return response


def replaced(make: Callable[[], Replace]) -> Behaviour:
    """Each response is replaced, and the result is numbered anew; `make` is called per stream."""

    async def behaviour(exchange: Exchange) -> Answers:
        replace, numbers = make(), Numbers()
        async for response in exchange.upstream():
            for each in replace(response):
                yield numbers.put(each)

    return behaviour


async def limits_of(exchange: Exchange) -> v1.LoadCapabilities:
    """The engine's own limits; asked once for each proxy."""
    if "load" not in exchange.state:
        scope = await exchange.ask(METHODS[CAPABILITIES], v1.GetCapabilitiesRequest())
        exchange.state["load"] = scope.observability.load
    limits: v1.LoadCapabilities = exchange.state["load"]
    return limits
