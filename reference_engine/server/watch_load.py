"""All watchers of the load: one sampler for them, which never waits for any."""

import asyncio
from collections import deque

import grpc

from oe_wire import v1
from reference_engine.ranks.group import RankGroup
from reference_engine.server.deployment import Deployment
from reference_engine.server.faults import Fault, Faults
from reference_engine.server.load import LoadClock, load_info
from reference_engine.server.load_limits import (
    BURST,
    LONGEST_INTERVAL_MS,
    MESSAGE_MS,
    PERIOD_MS,
)
from reference_engine.server.load_sample import Sample
from reference_engine.server.load_settings import granted
from reference_engine.server.load_slot import Moment
from reference_engine.server.load_watcher import Watcher
from reference_engine.server.rejection import Rejection
from reference_engine.server.revisions import Revisions

FULL = Rejection(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    v1.ERROR_CODE_OVERLOADED,
    "max_watch_streams are open, expected fewer streams at a time",
    retryable=True,
)
SHUTTING_DOWN = Rejection(
    grpc.StatusCode.UNAVAILABLE,
    v1.ERROR_CODE_OVERLOADED,
    "the engine is shutting down",
    retryable=True,
)

SOURCE_FAILED = "the source of the load has failed"


class LoadWatch:
    """Reads the load that the engine publishes; no step of the engine waits for that.

    Watchers take turns, a few messages after each sample, so that many of them cost no more than
    few. For a moment after a change of the capabilities, which must not wait, they cost more.

    Used on the event loop's thread only.
    """

    def __init__(self, revisions: Revisions, engine: RankGroup, faults: Faults) -> None:
        self._revisions = revisions
        revisions.subscribe(self._changed)
        self._engine = engine
        self._faults = faults
        faults.subscribe(self._armed)
        self._clock = LoadClock()
        self._turns: deque[Watcher] = deque()
        self._open: set[Watcher] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._latest: Sample | None = None
        self._urgent_until = 0.0
        self._closed = False

    @property
    def num_open(self) -> int:
        """Streams that count against max_watch_streams."""
        return len(self._open)

    def load(self, *, include_per_rank: bool) -> v1.LoadInfo:
        """The load now."""
        loads = self._engine.loads
        ranks = range(len(loads)) if include_per_rank else ()
        return load_info(self._revisions.current, loads, self._clock.now(), ranks)

    def open(self, request: v1.WatchLoadRequest) -> Watcher | Rejection:
        """A new stream, to be released at its end."""
        deployment = self._revisions.current
        limits = deployment.load
        settings = granted(request, limits, len(self._engine))
        if isinstance(settings, Rejection):
            return settings
        if self._closed:
            return SHUTTING_DOWN
        if len(self._open) >= limits.max_watch_streams:
            return FULL
        watcher = Watcher(settings, deployment.instance_id, self._sample())
        self._open.add(watcher)
        self._turns.append(watcher)
        if self._timer is None:
            self._schedule(0)
        if self._faults.take(v1.FAULT_KIND_EVENT_SOURCE_FAILS):
            self._fail(watcher)
        return watcher

    def release(self, watcher: Watcher) -> None:
        """Free the place of a stream that has ended."""
        watcher.close()
        self._open.discard(watcher)

    def close(self) -> None:
        """End every stream as UNAVAILABLE, and take no new ones."""
        self._closed = True
        for watcher in self._open:
            watcher.close()
        if self._timer is not None:
            self._timer.cancel()

    def _armed(self, fault: Fault) -> None:
        """End every open stream, if it is a fault of theirs; else it waits for the next one."""
        if fault.kind == v1.FAULT_KIND_EVENT_SOURCE_FAILS and self._open:
            self._faults.disarm(fault)
            for watcher in self._open:
                self._fail(watcher)

    def _fail(self, watcher: Watcher) -> None:
        watcher.fail(
            v1.EngineError(code=v1.ERROR_CODE_INTERNAL, message=SOURCE_FAILED, retryable=True),
            self._sample().moment,
        )

    def _schedule(self, num_messages: int) -> None:
        """Look again after one period, or later after so many messages."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._urgent_until:
            num_messages = 0
        delay = max(PERIOD_MS, num_messages * MESSAGE_MS) / 1000
        self._timer = loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        """Take a sample, and show it to the watchers whose turn it is."""
        self._timer = None
        if not self._open:
            self._turns.clear()
            return
        sample = self._sample()
        num_messages = 0
        for _ in range(min(len(self._turns), BURST)):
            watcher = self._turns.popleft()
            if not watcher.closed:
                num_messages += watcher.visit(sample)
                self._turns.append(watcher)
        self._schedule(num_messages)

    def _changed(self, _deployment: Deployment) -> None:
        """The pair has changed: until every stream can have told it, turns follow at once."""
        self._urgent_until = asyncio.get_running_loop().time() + LONGEST_INTERVAL_MS / 1000

    def _sample(self) -> Sample:
        loads = self._engine.loads
        deployment = self._revisions.current
        pair = deployment.configuration_epoch, deployment.capability_revision
        moment = Moment(self._clock.now(), *pair)
        version = 0
        if self._latest is not None:
            before = self._latest
            same = before.loads == loads and before.moment[1:] == pair
            version = before.version + (not same)
        self._latest = Sample(deployment, loads, moment, version)
        return self._latest
