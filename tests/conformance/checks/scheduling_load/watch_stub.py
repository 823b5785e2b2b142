"""A small right engine with load streams, and the rules that a test may have it break."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc

from conformance.laws.load_stream import NANOS_PER_MS
from oe_wire import v1
from tests.conformance.checks.core.engine_stub import Refusal, StubEngine

OBSERVABILITY = "openengine.v1.OpenEngineObservability"
FLOOR, CEILING, BEAT_FLOOR, BEAT_CEILING = 5, 400, 60, 5_000
MOST = 6
TICK_SECONDS = 0.002
# Far beyond what a test watches.
SOURCE_SECONDS = 30.0


@dataclass
class Rules:
    """What is wrong with the streams. most: places. lifetime: seconds until a stream is closed.
    beats, initial, settings: whether they are sent. eager: a first snapshot that nobody asked for.
    frozen: no snapshot after the first. shared: numbers and intervals are those of all streams.
    keeps: places of ended streams stay taken. stale: every stream begins with the oldest load.
    contagious: the end of one stream ends the others. farewell: the status at shutdown.
    """

    most: int = MOST
    lifetime: float = SOURCE_SECONDS
    beats: bool = True
    initial: bool = True
    settings: bool = True
    eager: bool = False
    frozen: bool = False
    shared: bool = False
    keeps: bool = False
    stale: bool = False
    contagious: bool = False
    farewell: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE


@dataclass
class LoadSource:
    """The streams of one engine."""

    engine: StubEngine
    rules: Rules
    places: int = 0
    number: int = 0
    interval: int = FLOOR
    oldest: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self) -> v1.LoadInfo:
        """Running requests, and as queued ones a number that changes while any run."""
        running = len(self.engine.active)
        now = time.time_ns()
        return v1.LoadInfo(
            instance_id="instance-1",
            timestamp_unix_nanos=now,
            running_requests=running,
            queued_requests=now // (10 * NANOS_PER_MS) % 1000 if running else 0,
        )

    def watch(self, request: v1.WatchLoadRequest, context: Any) -> Iterator[v1.WatchLoadResponse]:
        """One stream, which frees its place in the end."""
        with self.lock:
            if self.places >= self.rules.most:
                raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED)
            self.places += 1
        ended = threading.Event()
        context.add_callback(ended.set)
        try:
            yield from self._stream(request, ended)
            if self.engine.closing.is_set() and self.rules.farewell is not grpc.StatusCode.OK:
                raise Refusal(self.rules.farewell)
        finally:
            with self.lock:
                self.places -= not self.rules.keeps
            if self.rules.contagious:
                self.over.set()

    def _stream(
        self, request: v1.WatchLoadRequest, ended: threading.Event
    ) -> Iterator[v1.WatchLoadResponse]:
        rules, numbers = self.rules, _Numbers(self)
        settings = _granted(request)
        self.interval = settings.effective_min_interval_ms
        end = time.monotonic() + rules.lifetime
        if rules.settings:
            yield numbers.put(v1.WatchLoadResponse(settings=settings))
        seen, wanted = self.load(), settings.initial_snapshot and rules.initial
        if wanted or rules.eager:
            yield numbers.put(_snapshot(self._first(seen), initial=wanted))
        while not (ended.is_set() or self.over.is_set() or self.engine.closing.is_set()):
            if ended.wait(TICK_SECONDS) or time.monotonic() >= end:
                return
            now = self.load()
            interval = self.interval if rules.shared else settings.effective_min_interval_ms
            if _changed(seen, now) and numbers.due("snapshot", interval) and not rules.frozen:
                seen = now
                yield numbers.put(_snapshot(now))
            elif rules.beats and numbers.due("any", settings.effective_heartbeat_interval_ms):
                yield numbers.put(v1.WatchLoadResponse(heartbeat=v1.LoadHeartbeat()))

    def _first(self, load: v1.LoadInfo) -> v1.LoadInfo:
        self.oldest = self.oldest or load.timestamp_unix_nanos
        if self.rules.stale:
            load.timestamp_unix_nanos = self.oldest
        return load


class _Numbers:
    """Numbers and times of one stream's responses."""

    def __init__(self, source: LoadSource) -> None:
        self._source = source
        self._number = source.number if source.rules.shared else 0
        self._snapshot = 0
        self._times = {"any": 0, "snapshot": 0}

    def put(self, response: v1.WatchLoadResponse) -> v1.WatchLoadResponse:
        self._number += 1
        self._source.number = self._number
        now = time.time_ns()
        self._times["any"] = now
        response.sequence_number = self._number
        response.timestamp_unix_nanos = now
        response.instance_id = "instance-1"
        response.configuration_epoch = response.capability_revision = 1
        if response.HasField("snapshot"):
            self._times["snapshot"], self._snapshot = now, self._number
        if response.HasField("heartbeat"):
            response.heartbeat.last_snapshot_sequence_number = self._snapshot
        return response

    def due(self, what: str, interval: int) -> bool:
        """Whether the interval has passed since then; no interval is never due."""
        return bool(interval) and time.time_ns() >= self._times[what] + interval * NANOS_PER_MS


def _granted(request: v1.WatchLoadRequest) -> v1.WatchLoadSettings:
    interval = min(max(request.min_interval_ms, FLOOR), CEILING)
    beat = request.heartbeat_interval_ms
    wished = request.HasField("heartbeat_interval_ms")
    if beat or not wished:
        beat = max(min(max(beat, BEAT_FLOOR), BEAT_CEILING), interval)
    return v1.WatchLoadSettings(
        effective_min_interval_ms=interval,
        effective_heartbeat_interval_ms=beat,
        initial_snapshot=request.initial_snapshot or not request.HasField("initial_snapshot"),
        min_interval_clamped=request.min_interval_ms not in (0, interval),
        heartbeat_interval_clamped=wished and request.heartbeat_interval_ms != beat,
    )


def _snapshot(load: v1.LoadInfo, *, initial: bool = False) -> v1.WatchLoadResponse:
    return v1.WatchLoadResponse(snapshot=v1.LoadSnapshot(load=load, initial=initial))


def _changed(before: v1.LoadInfo, after: v1.LoadInfo) -> bool:
    return (before.running_requests, before.queued_requests) != (
        after.running_requests,
        after.queued_requests,
    )


def watched(**rules: Any) -> StubEngine:
    """A right engine with load streams, but for these rules."""
    engine = StubEngine()
    source = LoadSource(engine, Rules(**rules))
    engine.services.append(OBSERVABILITY)
    engine.scope.profiles.add(name="scheduling_load", major=1, services=[OBSERVABILITY])
    engine.scope.observability.load.CopyFrom(
        v1.LoadCapabilities(
            min_interval_floor_ms=FLOOR,
            min_interval_default_ms=FLOOR,
            min_interval_ceiling_ms=CEILING,
            heartbeat_floor_ms=BEAT_FLOOR,
            heartbeat_default_ms=BEAT_FLOOR,
            heartbeat_ceiling_ms=BEAT_CEILING,
            max_watch_streams=MOST,
            sample_period_ms=2,
            reported_fields=["running_requests", "queued_requests", "timestamp_unix_nanos"],
        )
    )
    engine.replies["OpenEngineObservability/GetLoad"] = lambda *_: source.load()
    engine.replies["OpenEngineObservability/WatchLoad"] = source.watch
    return engine
