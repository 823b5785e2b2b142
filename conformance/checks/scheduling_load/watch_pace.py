"""Checks of the pace of a load stream: how soon, how often, and after how long a silence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from conformance.checks.check import check
from conformance.checks.probe import Probe, describe
from conformance.checks.scheduling_load.watching import (
    beat_seconds,
    bounds,
    cancelled,
    close,
    granted,
    load_now,
    no_stream,
    open_watch,
    silence_limit,
    snapshots,
    start_work,
    visible_limit,
    wait_for,
    working,
)
from conformance.checks.steering import RELEASE_SECONDS, idle
from conformance.laws.load_stream import bounds_of, sent
from conformance.model.case import Case
from conformance.strategies.watch_load import fast_request, quiet_request
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from oe_wire import v1

# An interval between snapshots that an engine which takes the floor instead gets wrong by far.
FLOORS = 3
# Heartbeat intervals for which a stream is watched, idle or busy.
SILENCES = 2
BUSY_BEATS = 1.3
IDLE_BEATS = 1.2


def _paced_cases(declared: Declared) -> Iterable[Case]:
    bounds = bounds_of(declared)
    if bounds is None:
        return (Case(),)
    interval = min(FLOORS * bounds.min_interval_floor_ms, bounds.min_interval_ceiling_ms)
    return (Case(v1.WatchLoadRequest(min_interval_ms=interval)),)


@check(
    "OE-LOAD-033",
    table=_paced_cases,
    advice="Make the next snapshot no earlier than the granted interval after the last one.",
)
def snapshots_keep_apart(probe: Probe, case: Case) -> None:
    """While the load changes, snapshots are an interval apart."""
    bounds(probe)
    live = open_watch(probe, cast(v1.WatchLoadRequest, case.request))
    with working(probe, live):
        wait_for(probe, live, lambda: len(snapshots(live)) > FLOORS, visible_limit(probe, live))
    close(probe, live)
    probe.settle()


@check(
    "OE-LOAD-034",
    advice="Send a heartbeat when nothing was sent for the granted interval.",
)
def idle_stream_beats(probe: Probe, _: Case) -> None:
    """A stream that is left alone is never silent for long."""
    beat_seconds(probe)
    live = open_watch(probe, fast_request(probe.declared))
    if not granted(live).effective_heartbeat_interval_ms:
        no_stream(probe, close(probe, live))
    limit = silence_limit(probe, live)
    seen = 1
    # The initial snapshot, and after it one response for each silence.
    for _silence in range(SILENCES + 1):
        seen = max(seen, len(live.events)) + 1
        if not live.wait_event(seen, limit):
            call = close(probe, live)
            if not cancelled(call):
                no_stream(probe, call)
            interval = granted(live).effective_heartbeat_interval_ms
            probe.fail(f"a response at least every {interval} ms", describe(call), call)
    close(probe, live)
    probe.settle()


@check(
    "OE-LOAD-036",
    advice="Start the interval of the heartbeat anew with everything that is sent.",
)
def busy_stream_does_not_beat(probe: Probe, _: Case) -> None:
    """While snapshots come all the time, no heartbeat does."""
    span = 1000 * BUSY_BEATS * beat_seconds(probe)
    live = open_watch(probe, fast_request(probe.declared))

    def watched() -> bool:
        responses = sent(live.events)
        return responses[-1].ms_after(responses[0]) >= span

    with working(probe, live):
        wait_for(probe, live, watched, span / 1000 + silence_limit(probe, live))
    close(probe, live)
    probe.settle()


@check(
    "OE-LOAD-037",
    advice="Look at the load often enough, and send what has changed as soon as the interval "
    "between snapshots allows.",
)
def changes_are_seen(probe: Probe, _: Case) -> None:
    """A request that begins to run, and its end, are on the stream soon after GetLoad has them."""
    live = open_watch(probe, quiet_request())
    if not load_now(probe).HasField("running_requests"):
        probe.skip("the engine does not tell running_requests")
    if not idle(probe):
        probe.skip("the engine does not come to rest")
    baseline = load_now(probe).running_requests
    running = start_work(probe)
    _await_change(probe, live, baseline + 1)
    close(probe, running)
    _await_change(probe, live, baseline)
    close(probe, live)


def _await_change(probe: Probe, live: LiveCall, wanted: int) -> None:
    """Wait until GetLoad tells of `wanted` running requests, then for the stream to do so."""
    limit = probe.pace.required(RELEASE_SECONDS) + probe.pace.unary_limit()
    if not probe.wait_until(lambda: load_now(probe).running_requests == wanted, limit):
        probe.skip(f"GetLoad does not come to {wanted} running requests")

    def shown() -> bool:
        latest = snapshots(live)[-1:]
        return any(each.response.snapshot.load.running_requests == wanted for each in latest)

    limit = visible_limit(probe, live)
    if not wait_for(probe, live, shown, limit):
        call = close(probe, live)
        if not cancelled(call):
            no_stream(probe, call)
        last = [each.response.snapshot.load.running_requests for each in snapshots(live)[-1:]]
        expected = f"{wanted} running requests on the stream within {limit:.2f} s"
        probe.fail(expected, f"{last} in the last snapshot", call)


@check(
    "OE-LOAD-048",
    advice="Send a snapshot when something has changed, and a heartbeat otherwise.",
)
def idle_stream_does_not_repeat(probe: Probe, _: Case) -> None:
    """On an idle engine the same snapshot does not come again and again."""
    seconds = IDLE_BEATS * beat_seconds(probe)
    live = open_watch(probe, fast_request(probe.declared))
    probe.wait_until(lambda: live.done, seconds)
    close(probe, live)
    probe.settle()
