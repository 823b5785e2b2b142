"""Notices readers that do not read: writes to them do not come to an end."""

import asyncio
from collections.abc import Awaitable, Callable


class StallWatch:
    """Times the writes of all streams with one timer. Used on the event loop's thread only.

    timeout_ms: how long a write may take, 0 for ever.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout = timeout_ms / 1000
        # In order of their start, as dicts are.
        self._writing: dict[Callable[[], None], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def write(self, writing: Awaitable[None], on_stall: Callable[[], None]) -> None:
        """Wait for a write; on_stall, one per stream, is called when that takes too long.

        The write goes on then: the reader may come back and read the end of its request.
        """
        if not self._timeout:
            await writing
            return
        loop = asyncio.get_running_loop()
        self._writing[on_stall] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._timeout, self._look)
        try:
            await writing
        finally:
            self._writing.pop(on_stall, None)

    def _look(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        while self._writing:
            on_stall, since = next(iter(self._writing.items()))
            # The timer can fire up to one tick of the clock early.
            if loop.time() < since + self._timeout:
                self._timer = loop.call_at(since + self._timeout, self._look)
                return
            del self._writing[on_stall]
            on_stall()
