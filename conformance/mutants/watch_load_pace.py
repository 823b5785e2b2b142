"""Mutants of the pace of a load stream, and of what a slow reader does to it and to others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from conformance.mutants.behaviours import when
from conformance.mutants.load_streams import (
    GET_LOAD,
    NANOS_PER_MS,
    WATCH_LOAD,
    Numbers,
    Replace,
    kind,
    limits_of,
    replaced,
)
from conformance.mutants.mutant import Answers, Exchange, Mutant
from conformance.mutants.reading import read_ahead, ticking
from oe_wire import v1

# A reader that takes a message later than this is slow, not just busy.
SLOW_SECONDS = 0.5


async def _faster(exchange: Exchange) -> Answers:
    """The interval is reported and never looked at again."""
    limits, wish = await limits_of(exchange), exchange.request.min_interval_ms
    slow = limits.min_interval_floor_ms < wish <= limits.min_interval_ceiling_ms
    if slow:
        exchange.request.min_interval_ms = 0
    async for response in exchange.upstream():
        if slow and response.HasField("settings"):
            response.settings.effective_min_interval_ms = wish
        yield response


def _without_heartbeats() -> Replace:
    def replace(response: Any) -> Iterable[Any]:
        if kind(response) != "heartbeat":
            yield response

    return replace


def _timer_of_its_own() -> Replace:
    """Besides those after a silence, a heartbeat comes whenever the interval is over."""
    interval = 0
    due = 0

    def replace(response: Any) -> Iterable[Any]:
        nonlocal interval, due
        yield response
        if kind(response) == "settings":
            interval = response.settings.effective_heartbeat_interval_ms * NANOS_PER_MS
            due = response.timestamp_unix_nanos + interval
        if kind(response) == "snapshot" and interval and response.timestamp_unix_nanos >= due:
            due = response.timestamp_unix_nanos + interval
            beat = v1.WatchLoadResponse()
            beat.CopyFrom(response)
            beat.coalesced_events = 0
            beat.heartbeat.SetInParent()
            yield beat

    return replace


async def _frozen(exchange: Exchange) -> Answers:
    """The number of running requests is read when the stream is opened."""
    first: int | None = None
    async for response in exchange.upstream():
        load = response.snapshot.load
        # Sums over ranks are another row's matter.
        if load.HasField("running_requests") and not load.ranks:
            first = load.running_requests if first is None else first
            load.running_requests = first
        yield response


async def _repeating(exchange: Exchange) -> Answers:
    """The last snapshot is sent again at every tick, in place of heartbeats."""
    limits, numbers = await limits_of(exchange), Numbers()
    seconds = max(20, 2 * limits.min_interval_floor_ms) / 1000
    last: Any = None
    latest, interval = 0, 0
    async with ticking(exchange.upstream(), seconds) as answers:
        async for answer in answers:
            response = _again(last) if answer is None and last is not None else answer
            if response is None or (last is not None and kind(response) == "heartbeat"):
                continue
            if kind(response) == "settings":
                interval = response.settings.effective_min_interval_ms * NANOS_PER_MS
            step = interval if kind(response) == "snapshot" and last is not None else 0
            latest = response.timestamp_unix_nanos = max(
                response.timestamp_unix_nanos, latest + step
            )
            last = response if kind(response) == "snapshot" else last
            yield numbers.put(response)


def _again(snapshot: Any) -> Any:
    response = v1.WatchLoadResponse()
    response.CopyFrom(snapshot)
    response.coalesced_events = 0
    response.snapshot.initial = False
    return response


async def _queued(exchange: Exchange) -> Answers:
    """Everything waits in a queue. A reader that was slow once is behind ever after."""
    clock = asyncio.get_running_loop().time
    queue: list[tuple[float, Any]] = []
    numbers, behind = Numbers(), 0.0
    async with read_ahead(exchange.upstream(), lambda r: queue.append((clock(), r))) as ahead:
        while queue or not ahead.ended:
            await ahead.arrival()
            while queue:
                arrived, response = queue.pop(0)
                await asyncio.sleep(max(0.0, arrived + behind - clock()))
                response.coalesced_events = 0
                begun = clock()
                yield numbers.put(response)
                if clock() - begun > SLOW_SECONDS:
                    behind = max(behind, clock() - arrived)


async def _one_writer(exchange: Exchange) -> Answers:
    """All answers about the load are written under one lock."""
    lock: asyncio.Lock = exchange.state.setdefault("lock", asyncio.Lock())
    async for response in exchange.upstream():
        async with lock:
            yield response


async def _full_slot(exchange: Exchange) -> Answers:
    """What comes while a snapshot waits takes its place, or is lost if it is no snapshot."""
    waiting: list[Any] = []

    def put(response: Any) -> None:
        if waiting and kind(response) == kind(waiting[-1]) == "snapshot":
            response.coalesced_events += waiting.pop().coalesced_events + 1
        if not waiting or kind(response) == "snapshot":
            waiting.append(response)

    async with read_ahead(exchange.upstream(), put) as ahead:
        while waiting or not ahead.ended:
            await ahead.arrival()
            while waiting:
                yield waiting.pop(0)


MUTANTS = (
    Mutant(
        "load-interval-not-kept",
        "OE-LOAD-033",
        "The interval between snapshots is granted and not kept.",
        {WATCH_LOAD: when(lambda request: not request.HasField("heartbeat_interval_ms"), _faster)},
    ),
    Mutant(
        "load-no-heartbeats",
        "OE-LOAD-034",
        "There are no heartbeats.",
        {WATCH_LOAD: replaced(_without_heartbeats)},
    ),
    Mutant(
        "load-heartbeat-by-timer",
        "OE-LOAD-036",
        "Heartbeats come by a timer that runs on whatever else is sent.",
        {WATCH_LOAD: replaced(_timer_of_its_own)},
    ),
    Mutant(
        "load-frozen",
        "OE-LOAD-037",
        "The stream goes on telling the number of running requests of its start.",
        {WATCH_LOAD: _frozen},
    ),
    Mutant(
        "load-queued",
        "OE-LOAD-038",
        "A queue keeps every snapshot for a slow reader, who never catches up.",
        {WATCH_LOAD: _queued},
    ),
    Mutant(
        "load-one-writer",
        "OE-LOAD-039",
        "One lock guards all writes, and it is held until the reader has read.",
        {WATCH_LOAD: _one_writer, GET_LOAD: _one_writer},
        # Other streams fall silent.
        frozenset({"OE-LOAD-034"}),
    ),
    Mutant(
        "load-error-coalesced",
        "OE-LOAD-040",
        "The error finds the slot taken by a snapshot and is lost.",
        {WATCH_LOAD: _full_slot},
    ),
    Mutant(
        "load-repeated",
        "OE-LOAD-048",
        "The current snapshot is sent again and again.",
        {WATCH_LOAD: _repeating},
    ),
)
