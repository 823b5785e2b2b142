"""Who is in the engine's memory: uses, eviction of the idle, and waiting for a place.

All on the event loop; the engine applies the changes between two steps.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Protocol

from reference_engine.errors import TooManyAdaptersError
from reference_engine.lora.adapter import Adapter
from reference_engine.lora.low_rank import AdapterWeights


class Engines(Protocol):
    """Takes changes of its memory in order, between two steps; see AdapterMemory."""

    def put_adapter(self, key: str, weights: AdapterWeights) -> None:
        """Add an adapter, before any request that is submitted later."""
        ...

    def drop_adapter(self, key: str) -> None:
        """Forget an adapter, after any request that was cancelled before."""
        ...


Read = Callable[[], Awaitable[AdapterWeights]]


class Residency:
    """At most `places` adapters are in memory; at most `max_waiting` calls queue."""

    def __init__(self, engines: Engines, places: int, max_waiting: int) -> None:
        self._engines = engines
        self._places = places
        self._max_waiting = max_waiting
        # Users by key of the adapter, the least recently used adapter first.
        self._users: OrderedDict[str, int] = OrderedDict()
        self._retired: set[str] = set()
        self._num_acquiring = 0
        # First come, first served: nobody overtakes whoever waits for a place, so nobody starves.
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()

    @property
    def keys(self) -> tuple[str, ...]:
        """The adapters in memory, the least recently used first."""
        return tuple(self._users)

    def offer(self, adapter: Adapter, weights: AdapterWeights) -> None:
        """Put a new adapter into memory if that makes nobody wait."""
        if not self._turn.locked() and self._make_room():
            self._put(adapter.key, weights)

    async def acquire(self, adapter: Adapter, read: Read) -> None:
        """Count one more use; wait for a place and read the adapter if it is not in memory.

        Raises TooManyAdaptersError if too many wait already, and what `read` raises.
        """
        if self._num_acquiring > self._max_waiting:
            raise TooManyAdaptersError("too many requests wait for adapters that are not in memory")
        self._num_acquiring += 1
        try:
            async with self._turn:
                while adapter.key not in self._users and not self._make_room():
                    self._freed.clear()
                    await self._freed.wait()
                if adapter.key not in self._users:
                    self._put(adapter.key, await read())
                self._users[adapter.key] += 1
                self._users.move_to_end(adapter.key)
        finally:
            self._num_acquiring -= 1

    def release(self, adapter: Adapter) -> None:
        """End one use."""
        key = adapter.key
        self._users[key] -= 1
        if not self._users[key]:
            self._freed.set()
            if key in self._retired:
                self._evict(key)

    def retire(self, adapter: Adapter) -> None:
        """Let go of an adapter, now or when its last use ends."""
        users = self._users.get(adapter.key)
        if users == 0:
            self._evict(adapter.key)
        elif users is not None:
            self._retired.add(adapter.key)

    def _make_room(self) -> bool:
        """Have a free place, which may cost an idle adapter its own."""
        if len(self._users) < self._places:
            return True
        idle = next((key for key, users in self._users.items() if not users), None)
        if idle is None:
            return False
        self._evict(idle)
        return True

    def _put(self, key: str, weights: AdapterWeights) -> None:
        self._users[key] = 0
        self._engines.put_adapter(key, weights)

    def _evict(self, key: str) -> None:
        del self._users[key]
        self._retired.discard(key)
        self._freed.set()
        self._engines.drop_adapter(key)
