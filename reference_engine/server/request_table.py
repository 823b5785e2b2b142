"""The one table of request ids: which are active, and which have ended a short while ago."""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from reference_engine.engine.stream import Stream

# 65,536 ids of at most 256 bytes: about 20 MB at worst.
MAX_FINISHED = 65_536


class RequestTable:
    """Ids of Generate calls. Used on the event loop's thread only.

    on_change: called when a request has come or gone.
    """

    def __init__(self, retention_ms: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._retention = retention_ms / 1000
        self._clock = clock
        self._active: dict[str, Stream] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._finished: OrderedDict[str, float] = OrderedDict()
        self._end: asyncio.Future[None] | None = None
        self.on_change: Callable[[], None] = lambda: None

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._active

    def add(self, request_id: str, stream: Stream) -> None:
        """Note an active request; the id must not be active."""
        self._active[request_id] = stream
        self._idle.clear()
        self.on_change()

    def active(self, request_id: str) -> Stream | None:
        """The active request with this id."""
        return self._active.get(request_id)

    def ids(self) -> set[str]:
        """The id of every active request."""
        return set(self._active)

    def streams(self) -> tuple[Stream, ...]:
        """Every active request."""
        return tuple(self._active.values())

    def finish(self, request_id: str, stream: Stream) -> None:
        """Free the id of a request that has ended; a second call, or a newer owner, is let be."""
        if self._active.get(request_id) is not stream:
            return
        del self._active[request_id]
        if not self._active:
            self._idle.set()
        self._finished[request_id] = self._clock()
        self._finished.move_to_end(request_id)
        self._forget()
        if self._end is not None:
            self._end.set_result(None)
            self._end = None
        self.on_change()

    async def ended(self, streams: Iterable[Stream]) -> None:
        """Wait until none of the requests is active."""
        left = set(streams)
        while left.intersection(self._active.values()):
            if self._end is None:
                self._end = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._end)

    async def idle_within(self, seconds: float) -> bool:
        """Wait until no request is active; False when that took longer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        return self._idle.is_set()

    def finished_recently(self, request_id: str) -> bool:
        """Whether a request with this id ended within the retention time."""
        self._forget()
        return request_id in self._finished

    def _forget(self) -> None:
        oldest = self._clock() - self._retention
        while self._finished:
            request_id, ended = next(iter(self._finished.items()))
            if ended >= oldest and len(self._finished) <= MAX_FINISHED:
                return
            del self._finished[request_id]
