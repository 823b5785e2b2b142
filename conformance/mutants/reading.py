"""Reading an engine's answers beside something else: until an event, with a clock, ahead of time.

A generator that is being read cannot be closed, so whoever stops early first ends the read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

from conformance.mutants.mutant import Answers


async def until(stop: asyncio.Event, answers: AsyncGenerator[Any, None]) -> Answers:
    """The answers until the event is set, even if none comes any more; then they are closed."""
    stopping = asyncio.ensure_future(stop.wait())
    reading: asyncio.Future[Any] | None = None
    try:
        while True:
            reading = asyncio.ensure_future(anext(answers, None))
            await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set() or (message := reading.result()) is None:
                return
            yield message
    finally:
        stopping.cancel()
        if reading is not None:
            await dropped(reading)
        await answers.aclose()


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
