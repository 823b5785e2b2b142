"""Random loads, unloads and uses against what must always hold."""

import asyncio
import random

import pytest

from reference_engine.errors import AdapterError, UnknownAdapterError
from tests.reference_engine.lora.test_registry import Setup

NAMES = "abcde"


class Machine:
    """Tasks that do as they like, and the adapters that they hold."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.setup = Setup(loaded=4, places=2, waiting=50)
        self.held: list[str] = []

    async def user(self):
        """Use something for a few turns of the loop."""
        for _ in range(8):
            try:
                async with self.setup.registry.use(self.random.choice(NAMES)) as adapter:
                    self.held.append(adapter.key)
                    for _ in range(self.random.randrange(4)):
                        await asyncio.sleep(0)
                        self.check()
                    self.held.remove(adapter.key)
            except UnknownAdapterError:
                await asyncio.sleep(0)

    async def operator(self):
        """Load and unload."""
        for _ in range(20):
            number = self.random.randrange(len(NAMES))
            name = NAMES[number]
            try:
                if self.random.random() < 0.6:
                    await self.setup.registry.load(number + 1, name, f"/{name}")
                else:
                    self.setup.registry.unload(name)
            except AdapterError:
                await asyncio.sleep(0)
            self.check()

    def check(self):
        """Whoever holds an adapter has it in memory, and no limit is passed."""
        keys = self.setup.engine.keys
        assert set(self.held) <= set(keys)
        assert sorted(keys) == sorted(self.setup.residency.keys)
        assert len(keys) <= 2
        assert len(self.setup.registry.adapters()) <= 4

    async def run(self):
        async with asyncio.timeout(20):
            await asyncio.gather(self.operator(), *(self.user() for _ in range(12)))
        loaded = {adapter.key for adapter in self.setup.registry.adapters()}
        assert self.held == []
        assert set(self.setup.engine.keys) <= loaded
        for adapter in self.setup.registry.adapters():
            self.setup.registry.unload(adapter.name)
        assert self.setup.engine.keys == []


@pytest.mark.parametrize("seed", range(12))
def test_invariants(seed):
    """Nothing is lost, and everything ends, whatever comes when."""
    asyncio.run(Machine(seed).run())
