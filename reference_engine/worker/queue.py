"""A bounded queue in front of one decision at a time; it owns what is reported of it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from reference_engine.worker.contract import (
    Answer,
    Busy,
    InferenceFailed,
    Outcome,
    Readiness,
    Report,
    Unavailable,
    Worker,
)

log = logging.getLogger(__name__)

Decide = Callable[[bytes], Awaitable[Outcome]]


@dataclass(slots=True, eq=False)
class _Entry:
    """A request in the queue. depth: of the queue when it was admitted."""

    body: bytes
    depth: int
    reply: asyncio.Future[Outcome]


class QueuedWorker(Worker):
    """Admits up to `capacity` requests, running or waiting, and decides them in their order.

    It is starting until `open` is called. All methods are for the event loop's thread.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._readiness = Readiness.STARTING
        self._failure: str | None = None
        self._waiting: deque[_Entry] = deque()
        self._arrived = asyncio.Event()
        self._depth = 0
        self._rejected = 0
        self._runner: asyncio.Task[None] | None = None

    def open(self, decide: Decide) -> None:
        """Begin to decide; from now on the worker is ready."""
        self._runner = asyncio.create_task(self._run(decide), name="worker queue")
        self._readiness = Readiness.READY

    def fail(self, reason: str) -> None:
        """Take no more work and say why. What has been accepted is still decided."""
        self._readiness, self._failure = Readiness.FAILED, reason

    def readiness(self) -> Readiness:
        return self._readiness

    def failure(self) -> str | None:
        return self._failure

    def report(self) -> Report:
        return Report(self._depth, self._capacity, self._rejected)

    async def submit(self, body: bytes, deadline: float) -> Outcome:
        # The caller cancels at the deadline: a queue that answered then could only race with it.
        del deadline
        if self._readiness is not Readiness.READY:
            return Unavailable()
        if self._depth >= self._capacity:
            self._rejected += 1
            return Busy()
        self._depth += 1
        reply: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        entry = _Entry(body, self._depth, reply)
        self._waiting.append(entry)
        self._arrived.set()
        try:
            return await reply
        finally:
            if reply.cancelled() and entry in self._waiting:
                self._waiting.remove(entry)
                self._complete(dropped=True)

    async def close(self) -> None:
        """Admit nothing more, give up what waits, and wait for the running decision."""
        if self._readiness is not Readiness.FAILED:
            self.fail("stopped")
        while self._waiting:
            self._settle(self._waiting.popleft(), Unavailable())
        runner, self._runner = self._runner, None
        self._arrived.set()
        if runner is not None:
            await asyncio.gather(runner, return_exceptions=True)

    async def _run(self, decide: Decide) -> None:
        while True:
            while not self._waiting:
                if self._runner is None:
                    return
                self._arrived.clear()
                await self._arrived.wait()
            entry = self._waiting.popleft()
            self._settle(entry, await _decided(decide, entry.body))

    def _settle(self, entry: _Entry, outcome: Outcome) -> None:
        dropped = entry.reply.done()
        if not dropped:
            if isinstance(outcome, Answer):
                outcome = replace(outcome, depth=entry.depth)
            entry.reply.set_result(outcome)
        self._complete(dropped=dropped)

    def _complete(self, *, dropped: bool) -> None:
        self._depth -= 1
        self._rejected += dropped


async def _decided(decide: Decide, body: bytes) -> Outcome:
    try:
        return await decide(body)
    except Exception:
        # Whatever the decision ran into, the next request must find a running queue.
        log.exception("a decision failed")
        return InferenceFailed()
