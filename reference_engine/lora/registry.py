"""The loaded adapters: load, unload, list and use by name."""

import asyncio
import itertools
import os.path
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from reference_engine.errors import (
    AdapterChangedError,
    AdapterConflictError,
    AdapterError,
    TooManyAdaptersError,
    UnknownAdapterError,
)
from reference_engine.lora.adapter import Adapter
from reference_engine.lora.low_rank import AdapterWeights
from reference_engine.lora.peft_directory import ReadAdapter
from reference_engine.lora.residency import Residency

Read = Callable[[str], ReadAdapter]
"""Reads a directory. Runs in a thread; raises AdapterError."""


UNKNOWN = "lora_name is not the name of a loaded adapter"


class AdapterRegistry:
    """One per engine, on the event loop; a load reads in a thread, so that nothing else waits."""

    def __init__(self, max_loaded: int, residency: Residency, read: Read) -> None:
        self._max_loaded = max_loaded
        self._residency = residency
        self._read = read
        self._loaded: dict[str, Adapter] = {}
        self._serials = itertools.count(1)
        self._loading = asyncio.Lock()

    def adapters(self) -> tuple[Adapter, ...]:
        """The loaded adapters, the oldest load first."""
        return tuple(self._loaded.values())

    async def load(self, lora_id: int, name: str, path: str) -> tuple[Adapter, bool]:
        """The adapter, and whether it was loaded before under the same id, name and path.

        One load at a time: of equal ones, the first loads and the others find it loaded. Raises
        AdapterError and its kinds; nothing has changed then.
        """
        if lora_id < 1:
            raise AdapterError(f"lora_id is {lora_id}, expected at least 1")
        if not name:
            raise AdapterError("lora_name is empty, expected a name")
        if not Path(path).is_absolute():
            raise AdapterError("source_path is empty or relative, expected an absolute path")
        async with self._loading:
            same = self._same(lora_id, name, path)
            if same is not None:
                return same, True
            if len(self._loaded) >= self._max_loaded:
                raise TooManyAdaptersError(
                    f"{self._max_loaded} adapters are loaded, which is the limit"
                )
            read = await asyncio.to_thread(self._read, path)
            adapter = Adapter(lora_id, name, path, next(self._serials), read.digest)
            self._loaded[name] = adapter
            self._residency.offer(adapter, read.weights)
            return adapter, False

    def _same(self, lora_id: int, name: str, path: str) -> Adapter | None:
        wanted = (lora_id, name, os.path.normpath(path))
        for one in self._loaded.values():
            found = (one.lora_id, one.name, os.path.normpath(one.path))
            if found == wanted:
                return one
            fields = ("lora_id", "lora_name", "source_path")
            for field, ours, theirs in zip(fields, wanted, found, strict=True):
                if ours == theirs:
                    raise AdapterConflictError(
                        f"{field} belongs to a loaded adapter that differs otherwise"
                    )
        return None

    def unload(self, name: str) -> Adapter:
        """Forget the adapter; requests that use it go on with it. Raises UnknownAdapterError."""
        if not name:
            raise AdapterError("lora_name is empty, expected the name of a loaded adapter")
        adapter = self._find(name)
        del self._loaded[name]
        self._residency.retire(adapter)
        return adapter

    @asynccontextmanager
    async def use(self, name: str) -> AsyncIterator[Adapter]:
        """Hold a loaded adapter in memory.

        Raises UnknownAdapterError, TooManyAdaptersError when too many calls wait for memory, and
        AdapterChangedError when the adapter has to be read again and its files have changed.
        """
        adapter = self._find(name)
        await self._residency.acquire(adapter, lambda: self._read_again(adapter))
        try:
            if self._loaded.get(name) is not adapter:
                # Unloaded in the meantime; it may have come into memory only after that.
                self._residency.retire(adapter)
                raise UnknownAdapterError(UNKNOWN)
            yield adapter
        finally:
            self._residency.release(adapter)

    def _find(self, name: str) -> Adapter:
        adapter = self._loaded.get(name)
        if adapter is None:
            raise UnknownAdapterError(UNKNOWN)
        return adapter

    async def _read_again(self, adapter: Adapter) -> AdapterWeights:
        try:
            read = await asyncio.to_thread(self._read, adapter.path)
        except AdapterError as error:
            raise AdapterChangedError("the adapter's files can't be read any more") from error
        if read.digest != adapter.digest:
            raise AdapterChangedError("the adapter's files have changed since it was loaded")
        return read.weights
