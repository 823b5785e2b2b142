"""Checks of load streams beside each other: one may know nothing of another."""

from __future__ import annotations

import grpc

from conformance.checks.check import check
from conformance.checks.probe import Probe, describe
from conformance.checks.scheduling_load.watching import (
    WATCH,
    bounds,
    close,
    engine_clock,
    load_now,
    open_watch,
    snapshots,
    start_work,
    visible_limit,
    wait_for,
    working,
)
from conformance.laws.load_stream import NANOS_PER_MS, of_kind, sent
from conformance.model.case import Case
from conformance.strategies.watch_load import fast_request, quiet_request
from conformance.wire.live_call import LiveCall
from oe_wire import v1

# What the initial snapshot of a new stream may lag behind GetLoad, beside the sample period.
LAG_MS = 50
# The deadline of a stream that does nothing else (the row's own figure is 1 s).
DEADLINE_SECONDS = 0.5
# Snapshots whose pace is compared, and how much slower than before they have to be.
CHANGES = 3
PLAIN_DIFFERENCE = 4.0


@check(
    "OE-LOAD-044",
    advice="Keep the numbers, the settings and the timers of each stream apart.",
)
def streams_are_independent(probe: Probe, _: Case) -> None:
    """A second, slow stream begins at 1 and leaves the first one as fast as it was."""
    limits = bounds(probe)
    fast = open_watch(probe, fast_request(probe.declared))
    needed = _seconds_of_changes(probe, fast, visible_limit(probe, fast))
    slow = open_watch(
        probe,
        v1.WatchLoadRequest(
            min_interval_ms=limits.min_interval_ceiling_ms,
            heartbeat_interval_ms=limits.heartbeat_ceiling_ms,
        ),
    )
    # What so many snapshots would take at the pace of the slow stream, and a bit less.
    slowed = 0.9 * min(CHANGES - 1, 5.0) * limits.min_interval_ceiling_ms / 1000
    telling = needed is not None and needed < slowed / PLAIN_DIFFERENCE
    in_time = not telling or _seconds_of_changes(probe, fast, slowed) is not None
    begun, kept = close(probe, slow), close(probe, fast)
    first = sent(begun.events)[0].response.sequence_number
    if first != 1:
        probe.fail("sequence_number 1 at the start of a second stream", str(first), begun, 0)
    if not in_time:
        actual = f"{needed:.2f} s for {CHANGES} snapshots before, over {slowed:.2f} s after it"
        probe.fail("a first stream that the second does not slow down", actual, kept)


def _seconds_of_changes(probe: Probe, live: LiveCall, limit: float) -> float | None:
    """How long CHANGES snapshots of a busy engine take; None when that is above the limit, or the
    engine does not generate.
    """
    if not probe.declared.generates:
        return None
    with working(probe, live):
        begun, count = live.elapsed, len(snapshots(live)) + CHANGES
        shown = wait_for(probe, live, lambda: len(snapshots(live)) >= count, limit)
        return live.elapsed - begun if shown else None


@check(
    "OE-LOAD-045",
    waits=0.5,
    advice="Begin a new stream with the load as it is now, not with what was sent to others.",
)
def no_replay(probe: Probe, _: Case) -> None:
    """The initial snapshot of a second stream is as new as GetLoad, not as the first stream."""
    limits = bounds(probe)
    period = limits.sample_period_ms if limits.HasField("sample_period_ms") else 1000
    tolerance = (period + LAG_MS) * NANOS_PER_MS
    first = _initial_time(probe)
    limit = probe.pace.required(4 * tolerance / NANOS_PER_MS / 1000) + probe.pace.unary_limit()
    times = [first]

    def moved_on() -> bool:
        times.append(engine_clock(probe))
        return times[-1] > first + 2 * tolerance

    if not probe.wait_until(moved_on, limit):
        probe.skip("the time in LoadInfo stands still")
    again = _initial_time(probe)
    if again < times[-1] - tolerance:
        older = (times[-1] - again) / NANOS_PER_MS
        actual = f"a load measured {older:.0f} ms before that of GetLoad"
        probe.fail("an initial snapshot of the current load", actual, probe.log.transcripts[-1], 1)


def _initial_time(probe: Probe) -> int:
    """When the load in the initial snapshot of a new stream was measured, in nanoseconds."""
    live = open_watch(probe, fast_request(probe.declared))
    wait_for(probe, live, lambda: bool(snapshots(live)), visible_limit(probe, live))
    call = close(probe, live)
    for each in of_kind(sent(call.events), "snapshot")[:1]:
        if each.response.snapshot.load.HasField("timestamp_unix_nanos"):
            return each.response.snapshot.load.timestamp_unix_nanos
    return probe.skip("no initial snapshot with a time")


@check(
    "OE-LOAD-049",
    advice="End a stream whose deadline has passed with DEADLINE_EXCEEDED, and leave every other "
    "stream and the load alone.",
    waits=DEADLINE_SECONDS,
)
def deadline_ends_stream(probe: Probe, _: Case) -> None:
    """A stream lives until its deadline; another one and GetLoad go on."""
    other = open_watch(probe, quiet_request())
    call = probe.call(WATCH, fast_request(probe.declared), deadline=DEADLINE_SECONDS)
    if call.ending.code is not grpc.StatusCode.DEADLINE_EXCEEDED:
        probe.fail(f"DEADLINE_EXCEEDED after {DEADLINE_SECONDS:g} s", describe(call), call)
    load_now(probe)
    if probe.declared.generates:
        count = len(other.events) + 1
        running = start_work(probe)
        other.wait_event(count, visible_limit(probe, other))
        close(probe, running)
    ended = other.done
    kept = close(probe, other)
    if ended:
        probe.fail("another stream open after that", describe(kept), kept)
