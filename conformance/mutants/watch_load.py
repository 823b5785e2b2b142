"""Mutants of what comes on a load stream: order, numbers, times, completeness, its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc

from conformance.mutants.behaviours import edited, recoded, refusal, when
from conformance.mutants.load_streams import (
    NANOS_PER_MS,
    WATCH_LOAD,
    Replace,
    kind,
    limits_of,
    replaced,
)
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from conformance.mutants.reading import ticking
from oe_wire import v1

LIFETIME_SECONDS = 0.3


def _settings_again() -> Replace:
    """The settings follow the first snapshot once more."""
    kept: list[Any] = []

    def replace(response: Any) -> Iterable[Any]:
        yield response
        if kind(response) == "settings":
            kept.append(response)
        elif kind(response) == "snapshot" and kept:
            again = v1.WatchLoadResponse()
            again.CopyFrom(response)
            again.coalesced_events = 0
            again.settings.CopyFrom(kept.pop().settings)
            yield again

    return replace


def _without_initial() -> Replace:
    def replace(response: Any) -> Iterable[Any]:
        if not response.snapshot.initial:
            yield response

    return replace


async def _initial_unasked(exchange: Exchange) -> Answers:
    """The first snapshot is sent in any case; it is only not called initial."""
    unwanted = exchange.request.HasField("initial_snapshot") and not (
        exchange.request.initial_snapshot
    )
    exchange.request.ClearField("initial_snapshot")
    async for response in exchange.upstream():
        if unwanted and response.HasField("settings"):
            response.settings.initial_snapshot = False
        if unwanted and response.HasField("snapshot"):
            response.snapshot.initial = False
        yield response


def _from_zero(response: Any) -> None:
    response.sequence_number -= 1
    if response.heartbeat.last_snapshot_sequence_number:
        response.heartbeat.last_snapshot_sequence_number -= 1


def _every_other_number(response: Any) -> None:
    """Numbers are taken by events that go elsewhere."""
    response.sequence_number = 2 * response.sequence_number - 1
    named = response.heartbeat.last_snapshot_sequence_number
    if named:
        response.heartbeat.last_snapshot_sequence_number = 2 * named - 1


def _measured_later(response: Any) -> None:
    if response.snapshot.load.HasField("timestamp_unix_nanos"):
        later = response.timestamp_unix_nanos + NANOS_PER_MS
        response.snapshot.load.timestamp_unix_nanos = later


def _only_news(response: Any) -> None:
    if kind(response) == "snapshot" and not response.snapshot.initial:
        response.snapshot.load.ClearField("total_kv_blocks")


def _names_the_event_before(response: Any) -> None:
    if kind(response) == "heartbeat":
        response.heartbeat.last_snapshot_sequence_number = response.sequence_number - 1


async def _shared_interval(exchange: Exchange) -> Answers:
    """Every stream keeps the interval of the one that was opened last."""
    shared, last, lost = exchange.state, 0, 0
    named = 0
    async for response in exchange.upstream():
        if kind(response) == "settings":
            shared["interval"] = response.settings.effective_min_interval_ms * NANOS_PER_MS
        if kind(response) == "snapshot":
            if response.timestamp_unix_nanos - last < shared["interval"]:
                lost += response.coalesced_events + 1
                continue
            last, named = response.timestamp_unix_nanos, response.sequence_number
        if kind(response) == "heartbeat":
            response.heartbeat.last_snapshot_sequence_number = named
        response.coalesced_events += lost
        lost = 0
        yield response


async def _replays(exchange: Exchange) -> Answers:
    """The first load that anyone was sent stands at the start of every stream."""
    async for response in exchange.upstream():
        if response.snapshot.initial:
            first = exchange.state.setdefault("first", response.snapshot.load)
            if not response.snapshot.load.ranks and not first.ranks:
                response.snapshot.load.CopyFrom(first)
        yield response


async def _pair_of_the_start(exchange: Exchange) -> Answers:
    pair: tuple[int, int] | None = None
    async for response in exchange.upstream():
        pair = pair or (response.configuration_epoch, response.capability_revision)
        response.configuration_epoch, response.capability_revision = pair
        yield response


async def _raises_after_error(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        yield response
        if kind(response) == "error":
            raise Refused(grpc.StatusCode.INTERNAL, response.error.message)


async def _short_lived(exchange: Exchange) -> Answers:
    """Streams are closed after a while, so that clients find new replicas."""
    end = asyncio.get_running_loop().time() + LIFETIME_SECONDS
    async with ticking(exchange.upstream(), LIFETIME_SECONDS / 10) as answers:
        async for response in answers:
            if asyncio.get_running_loop().time() >= end:
                return
            if response is not None:
                yield response


class _Places:
    """Counts streams. A place that is freed while all are taken is noticed late: after seconds,
    or when another one is freed.
    """

    SECONDS = 3.0

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = 0
        self._late_until = 0.0

    def take(self, now: float) -> None:
        if self._open + (now < self._late_until) >= self._most:
            raise refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", "no place is free")
        self._open += 1

    def free(self, now: float) -> None:
        self._late_until = now + self.SECONDS if self._open >= self._most else 0.0
        self._open -= 1


async def _place_not_freed(exchange: Exchange) -> Answers:
    limits = await limits_of(exchange)
    places: _Places = exchange.state.setdefault("places", _Places(limits.max_watch_streams))
    clock = asyncio.get_running_loop().time
    places.take(clock())
    try:
        async for response in exchange.upstream():
            yield response
    finally:
        places.free(clock())


def _unavailable(refused: Refused, _: Any) -> Refused:
    if refused.code is not grpc.StatusCode.RESOURCE_EXHAUSTED:
        return refused
    return Refused(grpc.StatusCode.UNAVAILABLE, refused.details, refused.trailers)


MUTANTS = (
    Mutant(
        "load-settings-twice",
        "OE-LOAD-020",
        "The settings are sent again after the first snapshot.",
        {WATCH_LOAD: replaced(_settings_again)},
    ),
    Mutant(
        "load-initial-missing",
        "OE-LOAD-021",
        "A new stream is told nothing before something changes.",
        {WATCH_LOAD: replaced(_without_initial)},
    ),
    Mutant(
        "load-initial-unasked",
        "OE-LOAD-022",
        "Every new stream gets the current load at once.",
        {WATCH_LOAD: _initial_unasked},
    ),
    Mutant(
        "load-numbers-from-zero",
        "OE-LOAD-029",
        "The settings have the number 0.",
        {WATCH_LOAD: edited(_from_zero)},
        # That is no start at 1 either.
        frozenset({"OE-LOAD-044"}),
    ),
    Mutant(
        "load-loss-untold",
        "OE-LOAD-030",
        "Numbers are missing, and coalesced_events says that none is.",
        {WATCH_LOAD: edited(_every_other_number)},
    ),
    Mutant(
        "load-measured-after-sending",
        "OE-LOAD-031",
        "The time of a load is read after that of its response.",
        {WATCH_LOAD: edited(_measured_later)},
    ),
    Mutant(
        "load-changes-only",
        "OE-LOAD-032",
        "Later snapshots leave out what never changes.",
        {WATCH_LOAD: edited(_only_news)},
        # The field is one that is reported in every LoadInfo.
        frozenset({"OE-LOAD-004"}),
    ),
    Mutant(
        "load-heartbeat-names-any-event",
        "OE-LOAD-035",
        "A heartbeat names the event before it, whatever that was.",
        {WATCH_LOAD: edited(_names_the_event_before)},
    ),
    Mutant(
        "load-place-not-freed",
        "OE-LOAD-041",
        "While all places are taken, the end of a stream is noticed by a sweep seconds later.",
        {WATCH_LOAD: _place_not_freed},
    ),
    Mutant(
        "load-full-is-unavailable",
        "OE-LOAD-042",
        "One stream too many is refused with UNAVAILABLE.",
        {WATCH_LOAD: recoded(_unavailable)},
    ),
    Mutant(
        "load-interval-shared",
        "OE-LOAD-044",
        "The interval is kept in one place for all streams.",
        {WATCH_LOAD: _shared_interval},
        # In place of the snapshots that are held back no heartbeat comes.
        frozenset({"OE-LOAD-034"}),
    ),
    Mutant(
        "load-replayed",
        "OE-LOAD-045",
        "A new stream begins with what the first one began with.",
        {WATCH_LOAD: _replays},
    ),
    Mutant(
        "load-pair-of-the-start",
        "OE-LOAD-046",
        "Epoch and revision are those of the start of the stream.",
        {WATCH_LOAD: _pair_of_the_start},
        # A notice that is advertised does not come.
        frozenset({"OE-CORE-CAP-016"}),
    ),
    Mutant(
        "load-error-then-status",
        "OE-LOAD-047",
        "After the EngineError the call fails as well.",
        {WATCH_LOAD: _raises_after_error},
    ),
    Mutant(
        "load-stream-short-lived",
        "OE-LOAD-049",
        "Streams are closed with OK after a while.",
        {WATCH_LOAD: when(lambda request: request.heartbeat_interval_ms > 0, _short_lived)},
    ),
)
