"""What is due on a stream, with a clock of the test's own."""

import asyncio

import pytest

from oe_wire import v1
from reference_engine.engine.load import LoadSnapshot
from reference_engine.server.deployment import Deployment, RequestLimits, ServedModel
from reference_engine.server.load_sample import Sample
from reference_engine.server.load_slot import Moment
from reference_engine.server.load_watcher import Watcher

MS = 1_000_000
DEPLOYMENT = Deployment(
    instance_id="i",
    version="1",
    started_at_unix_nanos=1,
    model=ServedModel("m", (), 10, 20),
    limits=RequestLimits(),
    kv_block_size=16,
    total_kv_blocks=20,
    max_running=4,
    max_batched_tokens=8,
    data_parallel_size=2,
)


class Source:
    """Samples at chosen times; `load` is that of rank 0, rank 1 holds `other`."""

    def __init__(self) -> None:
        self.now = 0
        self.revision = 1
        self.load = LoadSnapshot(total_blocks=10)
        self.other = LoadSnapshot(total_blocks=10)
        self._version = 0

    def sample(self) -> Sample:
        self._version += 1
        moment = Moment(self.now * MS, 1, self.revision)
        return Sample(DEPLOYMENT, (self.load, self.other), moment, self._version)


class Stream:
    """A watcher whose reader takes everything at once, unless it is told to be slow."""

    def __init__(self, source: Source, **changes) -> None:
        self.source = source
        granted = v1.WatchLoadSettings(
            effective_min_interval_ms=100,
            effective_heartbeat_interval_ms=1000,
            initial_snapshot=True,
        )
        granted.MergeFrom(v1.WatchLoadSettings(**changes))
        self.watcher = Watcher(granted, "i", source.sample())
        self.seen = []

    async def read(self):
        """Take until nothing more is there; the last `next` is left waiting, as a call does."""
        while True:
            try:
                async with asyncio.timeout(0):
                    response = await self.watcher.next()
            except TimeoutError:
                return
            if response is None:
                return
            self.seen.append(response)

    async def at(self, now, running=None):
        """Visit it at a time, with so many requests on rank 0; then read."""
        self.source.now = now
        if running is not None:
            self.source.load = LoadSnapshot(running_requests=running, total_blocks=10)
        self.watcher.visit(self.source.sample())
        await self.read()

    def kinds(self):
        return [response.WhichOneof("event") for response in self.seen]

    def running(self):
        return [one.snapshot.load.running_requests for one in self.seen if one.HasField("snapshot")]


def run(scenario):
    asyncio.run(scenario())


def test_snapshots_keep_their_distance():
    """A change waits for the interval to pass since the last snapshot, the initial one too."""

    async def scenario():
        stream = Stream(Source())
        await stream.read()
        assert stream.kinds() == ["settings", "snapshot"]
        await stream.at(99, running=1)
        assert stream.running() == [0]
        await stream.at(100)
        await stream.at(150, running=2)
        await stream.at(199, running=3)
        assert stream.running() == [0, 1]
        await stream.at(200)
        assert stream.running() == [0, 1, 3]
        assert [one.coalesced_events for one in stream.seen] == [0, 0, 0, 0]

    run(scenario)


def test_the_same_is_not_said_twice():
    """What changed and changed back before it was due is no news."""

    async def scenario():
        stream = Stream(Source())
        await stream.read()
        await stream.at(50, running=5)
        await stream.at(100, running=0)
        await stream.at(300)
        assert stream.running() == [0]

    run(scenario)


def test_without_an_initial_snapshot():
    """The first change is told at once, and not as the initial one."""

    async def scenario():
        stream = Stream(Source())
        stream.watcher = Watcher(
            v1.WatchLoadSettings(effective_min_interval_ms=100), "i", stream.source.sample()
        )
        await stream.at(10)
        assert stream.kinds() == ["settings"]
        await stream.at(20, running=1)
        assert stream.kinds() == ["settings", "snapshot"]
        assert not stream.seen[-1].snapshot.initial

    run(scenario)


def test_heartbeats_follow_silence():
    """One comes when the interval has passed since the last message, whatever that was."""

    async def scenario():
        stream = Stream(Source())
        await stream.read()
        await stream.at(500, running=1)
        await stream.at(1499)
        assert stream.kinds()[2:] == ["snapshot"]
        await stream.at(1500)
        await stream.at(2499)
        await stream.at(2500)
        assert stream.kinds()[2:] == ["snapshot", "heartbeat", "heartbeat"]
        last = [one.heartbeat.last_snapshot_sequence_number for one in stream.seen[-2:]]
        assert last == [3, 3]

    run(scenario)


def test_a_slow_reader_gets_the_newest():
    """While a write lasts, snapshots replace each other and no heartbeat piles up."""

    async def scenario():
        stream = Stream(Source())
        await stream.read()
        stream.watcher.visit(stream.source.sample())
        await stream.at(100, running=1)
        source, watcher = stream.source, stream.watcher
        source.load = LoadSnapshot(running_requests=2, total_blocks=10)
        source.now = 200
        watcher.visit(source.sample())
        writing = await watcher.next()
        assert writing is not None
        for now in range(300, 5000, 100):
            source.now = now
            source.load = LoadSnapshot(running_requests=now, total_blocks=10)
            watcher.visit(source.sample())
        newest = await watcher.next()
        assert newest is not None
        assert newest.snapshot.load.running_requests == 4900
        assert newest.coalesced_events == 46
        source.now = 5100
        watcher.visit(source.sample())
        await stream.read()
        assert stream.kinds()[3:] == []

    run(scenario)


def test_a_new_revision_is_news():
    """The pair goes out with a snapshot although no number differs."""

    async def scenario():
        stream = Stream(Source())
        await stream.read()
        stream.source.revision = 2
        await stream.at(100)
        assert stream.kinds() == ["settings", "snapshot", "snapshot"]
        assert [one.capability_revision for one in stream.seen] == [1, 1, 2]

    run(scenario)


@pytest.mark.parametrize(("ranks", "told"), [([], 1), ([1], 2), ([0, 1], 2)])
def test_only_what_the_ranks_show(ranks, told):
    """A request that moves from one rank to the other is news only to who watches the ranks."""

    async def scenario():
        source = Source()
        source.load = LoadSnapshot(running_requests=1, total_blocks=10)
        stream = Stream(source, include_per_rank=bool(ranks), data_parallel_ranks=ranks)
        await stream.read()
        source.load, source.other = source.other, source.load
        await stream.at(100)
        assert stream.running() == [1] * told
        of_ranks = stream.seen[-1].snapshot.load.ranks
        assert [rank.data_parallel_rank for rank in of_ranks] == ranks

    run(scenario)


def test_a_failure_is_last():
    """What waits comes before it; afterwards nothing is produced and the stream is at its end."""

    async def scenario():
        stream = Stream(Source())
        stream.watcher.fail(v1.EngineError(message="x"), Moment(5, 1, 1))
        stream.watcher.fail(v1.EngineError(message="y"), Moment(6, 1, 1))
        await stream.at(2000, running=3)
        assert stream.kinds() == ["settings", "snapshot", "error"]
        assert stream.seen[-1].error.message == "x"
        assert await stream.watcher.next() is None
        assert stream.watcher.failed

    run(scenario)


def test_closing():
    """What waits is still given, then the stream is at its end."""

    async def scenario():
        stream = Stream(Source())
        stream.watcher.close()
        await stream.at(2000, running=3)
        assert stream.kinds() == ["settings", "snapshot"]
        assert await stream.watcher.next() is None
        assert not stream.watcher.failed

    run(scenario)
