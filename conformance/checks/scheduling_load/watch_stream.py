"""Checks of what comes on a load stream, one response after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from conformance.checks.check import Check, check
from conformance.checks.probe import Probe, describe
from conformance.checks.scheduling_load.watching import (
    WATCH,
    WATCH_SECONDS,
    beat_seconds,
    bounds,
    cancelled,
    close,
    granted,
    load_now,
    no_stream,
    open_watch,
    silence_limit,
    uphold,
    visible_limit,
    wait_for,
    working,
)
from conformance.checks.steering import idle
from conformance.laws.load_stream import of_kind, sent
from conformance.laws.watch_load_pace import HEARTBEAT_SLACK_SHARE
from conformance.model.case import Case
from conformance.strategies.watch_load import fast_request
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from oe_wire import v1

# Responses that show what a stream is like: settings, and a few that follow.
ENOUGH = 5
# Seconds within which the initial snapshot follows the settings (hint of LOAD-021).
INITIAL_SECONDS = 1.0
# What earlier requests left behind may still change the load of an idle engine.
TRIES = 4


def _fast_cases(declared: Declared) -> Iterable[Case]:
    return (Case(fast_request(declared)),)


def follow(probe: Probe, case: Case) -> None:
    """Watch while the load changes; what the law says about the stream decides."""
    live = probe.start(WATCH, cast(v1.WatchLoadRequest, case.request), deadline=WATCH_SECONDS)
    if live.wait_event(1, probe.pace.unary_limit()):
        with working(probe, live):
            live.wait_event(ENOUGH, visible_limit(probe, live))
    close(probe, live)
    probe.settle()


def _law_check(requirement: str, advice: str) -> Check:
    return check(requirement, table=_fast_cases, advice=advice)(follow)


CHECKS = (
    _law_check("OE-LOAD-020", "Send the settings once, before everything else."),
    _law_check("OE-LOAD-029", "Count the events of each stream from 1, which is the settings."),
    _law_check(
        "OE-LOAD-030",
        "Number an event when it is produced, and tell with the next one how many were replaced.",
    ),
    _law_check(
        "OE-LOAD-031",
        "Take times from a clock that never goes back, that of the load before that of the "
        "response.",
    ),
    _law_check("OE-LOAD-032", "Send the whole load in every snapshot, not what has changed."),
)


@check(
    "OE-LOAD-021",
    advice="Send a snapshot with initial = true right after the settings, however long the "
    "interval between snapshots is.",
)
def initial_at_once(probe: Probe, _: Case) -> None:
    """The initial snapshot follows at once, also on the slowest stream."""
    limits = bounds(probe)
    request = v1.WatchLoadRequest(
        min_interval_ms=limits.min_interval_ceiling_ms,
        heartbeat_interval_ms=limits.heartbeat_ceiling_ms,
    )
    live = open_watch(probe, request)
    limit = probe.pace.required(INITIAL_SECONDS) + 20 * probe.pace.unary
    in_time = live.wait_event(2, limit)
    call = close(probe, live)
    if not in_time and not cancelled(call):
        no_stream(probe, call)
    if not in_time:
        probe.fail(f"an initial snapshot within {INITIAL_SECONDS:g} s", describe(call), call)
    probe.settle()


@check(
    "OE-LOAD-022",
    advice="Without an initial snapshot, send none before a value has changed or a heartbeat is "
    "due, and mark none as initial.",
)
def initial_only_if_wanted(probe: Probe, _: Case) -> None:
    """On an idle engine nothing follows the settings before the first heartbeat."""
    beat_seconds(probe)
    if not idle(probe) or not any(_quiet_start(probe) for _try in range(TRIES)):
        probe.skip("the load changed while the engine should have been idle")


def _quiet_start(probe: Probe) -> bool:
    """Whether a new stream could be judged, and was found right."""
    before = load_now(probe)
    live = open_watch(probe, fast_request(probe.declared, initial=False))
    live.wait_event(2, silence_limit(probe, live))
    interval = granted(live).effective_heartbeat_interval_ms
    call = close(probe, live)
    uphold(probe)
    responses = sent(call.events)
    if len(responses) < 2 or not interval:
        no_stream(probe, call)
    first, second = responses[:2]
    waited = second.ms_after(first)
    if second.kind != "snapshot" or waited >= (1 - HEARTBEAT_SLACK_SHARE) * interval:
        return True
    if _values(second.response.snapshot.load) != _values(before):
        return False
    actual = f"a snapshot of the same load after {waited:.1f} ms"
    return probe.fail("nothing before a change or a heartbeat", actual, call, 1)


def _values(load: v1.LoadInfo) -> bytes:
    """The load without the time of its measurement."""
    copy = v1.LoadInfo()
    copy.CopyFrom(load)
    copy.ClearField("timestamp_unix_nanos")
    copy.ClearField("attributes")
    return copy.SerializeToString(deterministic=True)


@check(
    "OE-LOAD-035",
    advice="Keep the number of the last snapshot sent on the stream, 0 at first, and put it into "
    "each heartbeat.",
)
def heartbeat_after_any_start(probe: Probe, _: Case) -> None:
    """The first heartbeats of a stream with and of one without an initial snapshot."""
    beat_seconds(probe)
    streams = [
        open_watch(probe, fast_request(probe.declared, initial=initial))
        for initial in (True, False)
    ]
    for live in streams:
        _wait_beat(probe, live)
    for live in streams:
        close(probe, live)
    probe.settle()


def _wait_beat(probe: Probe, live: LiveCall) -> None:
    def beaten() -> bool:
        return bool(of_kind(sent(live.events), "heartbeat"))

    wait_for(probe, live, beaten, silence_limit(probe, live))
