"""What mutants of load streams are made of: numbers that stay right, limits, and clocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
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


@asynccontextmanager
async def ticking(answers: Answers, seconds: float) -> AsyncIterator[AsyncGenerator[Any, None]]:
    """The answers, and None whenever none has come for so long; for as long as the block runs."""
    async with aclosing(_ticks(answers, seconds)) as ticks:
        yield ticks


async def _ticks(answers: Answers, seconds: float) -> AsyncGenerator[Any, None]:
    pending: asyncio.Future[Any] | None = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(anext(answers, None))
            done, _ = await asyncio.wait({pending}, timeout=seconds)
            if not done:
                yield None
                continue
            answer, pending = pending.result(), None
            if answer is None:
                return
            yield answer
    finally:
        if pending is not None:
            await dropped(pending)


class Ahead:
    """A task that takes answers whether or not anyone wants them yet, and hands them to `put`."""

    def __init__(self, answers: Answers, put: Callable[[Any], None]) -> None:
        self.ended = False
        self._arrived = asyncio.Event()
        self.task = asyncio.ensure_future(self._read(answers, put))

    async def arrival(self) -> None:
        """Wait for another answer, or the end."""
        await self._arrived.wait()
        if not self.ended:
            self._arrived.clear()

    async def _read(self, answers: Answers, put: Callable[[Any], None]) -> None:
        try:
            async for answer in answers:
                put(answer)
                self._arrived.set()
        finally:
            self.ended = True
            self._arrived.set()


@asynccontextmanager
async def read_ahead(answers: Answers, put: Callable[[Any], None]) -> AsyncIterator[Ahead]:
    """Reads the answers while the block runs. Raises what they raised when it ends well."""
    ahead = Ahead(answers, put)
    try:
        yield ahead
        await ahead.task
    finally:
        await dropped(ahead.task)


async def dropped(task: asyncio.Future[Any]) -> None:
    """End a task whose result nobody wants any more."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
