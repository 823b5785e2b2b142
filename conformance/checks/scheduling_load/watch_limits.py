"""Checks of how many load streams there may be, and of what the end of one frees."""

from __future__ import annotations

import grpc

from conformance.checks.check import check
from conformance.checks.probe import Probe, describe
from conformance.checks.scheduling_load.crowd import FREED_SECONDS, Crowd, crowd
from conformance.checks.scheduling_load.watching import bounds
from conformance.model.case import Case
from conformance.strategies.watch_load import quiet_request
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Transcript

FEWEST = 4
# An engine that allows more streams than this is not filled up.
MOST = 256
# For an end that a refusal or a cancellation of another stream brings about.
AFTERMATH_SECONDS = 0.15


def _room(probe: Probe) -> int | None:
    """How many streams are allowed; None when that is not told, or too many to try."""
    limits = bounds(probe)
    if not limits.HasField("max_watch_streams") or limits.max_watch_streams > MOST:
        return None
    return int(limits.max_watch_streams)


@check(
    "OE-LOAD-041",
    advice="Take a stream off the books when its call ends for any reason, and touch no other.",
)
def cancelled_stream_makes_room(probe: Probe, _: Case) -> None:
    """With all places taken, cancelling one stream frees one and ends no other."""
    room = _room(probe)
    with crowd(probe, quiet_request()) as streams:
        opened = streams.grow(FEWEST if room is None else room)
        if len(opened) < FEWEST:
            probe.skip(f"only {len(opened)} streams could be opened")
        streams.end(opened[0])
        refusals: list[Transcript] = []

        def opens() -> bool:
            live = streams.begin()
            if streams.settled(live):
                return True
            refusals.append(streams.end(live))
            return False

        if not probe.wait_until(opens, probe.pace.required(FREED_SECONDS) + probe.pace.unary):
            expected = f"room for another stream within {FREED_SECONDS:g} s"
            probe.fail(expected, describe(refusals[-1]), refusals[-1])
        _still_open(probe, streams, opened[1:])


def _still_open(probe: Probe, streams: Crowd, opened: list[LiveCall]) -> None:
    probe.wait_until(lambda: any(live.done for live in opened), AFTERMATH_SECONDS)
    for live in opened:
        if live.done:
            call = streams.end(live)
            probe.fail("the other streams open", describe(call), call)


@check(
    "OE-LOAD-042",
    advice="Count the open streams, allow at least 4, and refuse with RESOURCE_EXHAUSTED only the "
    "one that is too many.",
)
def one_stream_too_many(probe: Probe, _: Case) -> None:
    """The streams that are allowed are there, the next one is refused, and they stay."""
    room = _room(probe)
    with crowd(probe, quiet_request()) as streams:
        opened = streams.grow(FEWEST if room is None else room)
        if len(opened) < FEWEST:
            probe.fail(f"at least {FEWEST} streams", f"{len(opened)} streams")
        if room is not None:
            live = streams.begin()
            streams.settled(live)
            refused = streams.end(live)
            because = f"{room} streams are open"
            probe.expect_rejected(refused, grpc.StatusCode.RESOURCE_EXHAUSTED, because=because)
        _still_open(probe, streams, opened)
