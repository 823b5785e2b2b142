"""Loading, unloading, uses and places, with an engine that only takes notes."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from reference_engine.errors import (
    AdapterChangedError,
    AdapterConflictError,
    AdapterError,
    ConfigError,
    TooManyAdaptersError,
    UnknownAdapterError,
)
from reference_engine.lora.limits import LoraLimits
from reference_engine.lora.peft_directory import ReadAdapter
from reference_engine.lora.registry import AdapterRegistry
from reference_engine.lora.residency import Residency
from reference_engine.lora.start import load_at_start

ROUNDS = 100


class Engine:
    """Notes what is in its memory."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def put_adapter(self, key, weights):
        assert key not in self.keys
        self.keys.append(key)

    def drop_adapter(self, key):
        self.keys.remove(key)

    @property
    def names(self):
        return [key.rsplit(":")[-1] for key in self.keys]


class Setup:
    """A registry over directories that exist in `digests` only."""

    def __init__(self, *, loaded=8, places=8, waiting=8):
        self.engine = Engine()
        self.reads = []
        self.digests: dict[str, bytes] = {}
        self.residency = Residency(self.engine, places, waiting)
        self.registry = AdapterRegistry(loaded, self.residency, self.read)

    def read(self, path):
        self.reads.append(path)
        if path.startswith("/bad"):
            raise AdapterError("bad directory")
        return ReadAdapter({}, self.digests.get(path, b"digest"))

    async def load(self, *names):
        for name in names:
            lora_id = len(self.registry.adapters()) + 1
            await self.registry.load(lora_id, name, f"/{name}")


async def settled(condition: Callable[[], bool]) -> None:
    """Let the other tasks run until the condition holds."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # what is waited for has no event
            await asyncio.sleep(0.001)


async def still(*tasks: "asyncio.Task[None]") -> None:
    """Whatever can run runs, and the tasks are not done."""
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


def holder(setup, name, gate):
    async def hold():
        async with setup.registry.use(name):
            await gate.wait()

    return asyncio.create_task(hold())


def test_load_again_conflicts_and_unload():
    """The rules of the protocol, and nothing changes on a refusal."""

    async def run():
        setup = Setup()
        registry = setup.registry
        first, before = await registry.load(1, "a", "/a")
        assert not before
        assert await registry.load(1, "a", "/a") == (first, True)
        assert await registry.load(1, "a", "/a/") == (first, True)
        assert setup.reads == ["/a"]
        await registry.load(2, "b", "/b")
        for wanted in [
            (1, "a", "/c"),
            (1, "c", "/a"),
            (3, "a", "/a"),
            (1, "c", "/c"),
            (3, "a", "/c"),
            (3, "c", "/a"),
            (1, "b", "/c"),
        ]:
            with pytest.raises(AdapterConflictError):
                await registry.load(*wanted)
        for wanted in [(0, "c", "/c"), (-1, "c", "/c"), (3, "", "/c"), (3, "c", ""), (3, "c", "c")]:
            with pytest.raises(AdapterError):
                await registry.load(*wanted)
        with pytest.raises(AdapterError, match="bad directory"):
            await registry.load(3, "c", "/bad")
        assert [one.name for one in registry.adapters()] == ["a", "b"]
        assert registry.unload("a") is first
        for name in ("a", "c"):
            with pytest.raises(UnknownAdapterError):
                registry.unload(name)
        assert setup.engine.names == ["b"]
        again, before = await registry.load(1, "a", "/a")
        assert not before
        assert again.key != first.key

    asyncio.run(run())


def test_a_full_registry_evicts_nobody():
    """Beyond the limit a load is refused; an equal one is still found."""

    async def run():
        setup = Setup(loaded=2)
        await setup.load("a", "b")
        with pytest.raises(TooManyAdaptersError):
            await setup.load("c")
        assert await setup.registry.load(1, "a", "/a") == (setup.registry.adapters()[0], True)
        assert setup.engine.names == ["a", "b"]
        setup.registry.unload("a")
        await setup.registry.load(3, "c", "/c")

    asyncio.run(run())


def test_equal_loads_at_once():
    """One of eight loads; the directory is read once."""

    async def run():
        setup = Setup()
        answers = await asyncio.gather(*(setup.registry.load(1, "a", "/a") for _ in range(8)))
        assert sorted(before for _, before in answers) == [False] + [True] * 7
        assert len({adapter for adapter, _ in answers}) == 1
        assert setup.reads == ["/a"]

    asyncio.run(run())


def test_a_cancelled_load_leaves_nothing():
    """The caller goes away while the directory is read."""

    async def run():
        setup = Setup()
        load = asyncio.create_task(setup.registry.load(1, "a", "/a"))
        await asyncio.sleep(0)
        load.cancel()
        with pytest.raises(asyncio.CancelledError):
            await load
        assert setup.registry.adapters() == ()
        assert setup.engine.keys == []
        assert (await setup.registry.load(1, "a", "/a"))[1] is False

    asyncio.run(run())


def test_the_idle_are_evicted_the_least_recently_used_first():
    """Evicted adapters stay loaded, and are read again when they are used."""

    async def run():
        setup = Setup(places=2)
        await setup.load("a", "b", "c")
        assert setup.engine.names == ["b", "c"]
        async with setup.registry.use("b"):
            pass
        async with setup.registry.use("a"):
            assert setup.engine.names == ["b", "a"]
        assert [one.name for one in setup.registry.adapters()] == ["a", "b", "c"]
        assert setup.reads == ["/a", "/b", "/c", "/a"]

    asyncio.run(run())


def test_adapters_in_use_stay():
    """A load finds no place then, and the new adapter is read when it is used."""

    async def run():
        setup = Setup(places=1)
        await setup.load("a")
        async with setup.registry.use("a"), setup.registry.use("a"):
            await setup.load("b")
            assert setup.engine.names == ["a"]
        async with setup.registry.use("b"):
            assert setup.engine.names == ["b"]

    asyncio.run(run())


def test_who_waits_for_a_place_is_not_overtaken():
    """Later calls for the adapter in memory queue behind, so the waiting one gets its turn."""

    async def run():
        setup = Setup(places=1)
        await setup.load("a", "b")
        gates = [asyncio.Event() for _ in range(3)]
        first = holder(setup, "b", gates[0])
        await settled(lambda: setup.engine.names == ["b"])
        second = holder(setup, "a", gates[1])
        third = holder(setup, "b", gates[2])
        await still(second, third)
        gates[0].set()
        await first
        await settled(lambda: setup.engine.names == ["a"])
        await still(second, third)
        gates[1].set()
        await second
        await settled(lambda: setup.engine.names == ["b"])
        gates[2].set()
        await third

    asyncio.run(run())


def test_the_queue_is_bounded_and_can_be_left():
    """More callers than may wait are refused; one that goes away makes room and holds nothing."""

    async def run():
        setup = Setup(places=1, waiting=0)
        await setup.load("a", "b")
        async with setup.registry.use("b"):
            waiting = holder(setup, "a", asyncio.Event())
            await still(waiting)
            with pytest.raises(TooManyAdaptersError):
                async with setup.registry.use("a"):
                    pass
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        async with setup.registry.use("a"):
            assert setup.engine.names == ["a"]

    asyncio.run(run())


def test_unload_while_in_use():
    """The user keeps the weights to its end; new ones find nothing, or the next of the name."""

    async def run():
        setup = Setup()
        registry = setup.registry
        await setup.load("a")
        async with registry.use("a") as old:
            registry.unload("a")
            with pytest.raises(UnknownAdapterError):
                async with registry.use("a"):
                    pass
            assert setup.engine.keys == [old.key]
            await registry.load(1, "a", "/a")
            async with registry.use("a") as new:
                assert setup.engine.keys == [old.key, new.key]
        assert setup.engine.keys == [new.key]

    asyncio.run(run())


def test_unloaded_while_somebody_waits_for_it():
    """The waiting call is refused, and the adapter does not stay in memory."""

    async def run():
        setup = Setup(places=1)
        await setup.load("a", "b")
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(setup.registry.use("b"))
            waiting = holder(setup, "a", asyncio.Event())
            await still(waiting)
            setup.registry.unload("a")
        with pytest.raises(UnknownAdapterError):
            await waiting
        assert setup.engine.keys == []

    asyncio.run(run())


@pytest.mark.parametrize("change", ["content", "gone"])
def test_changed_files_are_not_served(change):
    """An adapter that is read again must be the one that was loaded; others go on."""

    async def run():
        setup = Setup(places=1)
        await setup.load("a", "b")
        if change == "content":
            setup.digests["/a"] = b"other"
        else:
            setup.registry._read = gone
        with pytest.raises(AdapterChangedError):
            async with setup.registry.use("a"):
                pass
        assert setup.engine.keys == []
        setup.registry._read = setup.read
        async with setup.registry.use("b"):
            assert setup.engine.names == ["b"]

    def gone(path):
        raise AdapterError("no such directory")

    asyncio.run(run())


def test_adapters_of_the_command_line():
    """They get the ids 1, 2, ...; a bad one is an error of the option."""

    async def run():
        setup = Setup()
        await load_at_start(setup.registry, [("a", "/a"), ("b", "/b")])
        assert [(one.lora_id, one.name) for one in setup.registry.adapters()] == [
            (1, "a"),
            (2, "b"),
        ]
        with pytest.raises(ConfigError, match="--lora c=/bad: bad directory"):
            await load_at_start(Setup().registry, [("c", "/bad")])
        with pytest.raises(ConfigError, match="switched off"):
            await load_at_start(None, [("a", "/a")])

    asyncio.run(run())


@pytest.mark.parametrize("name", ["max_loaded", "max_resident", "max_rank"])
def test_limits_below_1(name):
    """The limit is named."""
    with pytest.raises(ConfigError, match=name):
        LoraLimits(**{name: 0})
