"""Load streams as the checks need them: open with its settings, waited for, and ended.

A stream that is refused, says nothing or ends before its time is the matter of other rows: a
check that only needs a stream skips then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from conformance.checks.probe import Probe, describe
from conformance.laws.load_stream import Sent, bounds_of, of_kind, sent, settings_of
from conformance.laws.watch_load_pace import longest_silence
from conformance.model.case import Case
from conformance.strategies.simple import LONG_TOKENS, long_request
from conformance.wire.live_call import LiveCall
from conformance.wire.slow_call import SlowCall
from conformance.wire.transcript import ActionKind, Transcript
from oe_wire import v1

WATCH = "OpenEngineObservability/WatchLoad"
GET_LOAD = "OpenEngineObservability/GetLoad"
# Longer than any check watches; reached only by an engine that hangs.
WATCH_SECONDS = 120.0
# A row that needs a heartbeat is not judged where even the shortest interval is longer.
LONGEST_BEAT_MS = 10_000
# What only the thorough budget has.
THOROUGH_REQUESTS = 4_000
# A change of the load is seen within the interval, the sample period, and this (LOAD-037).
VISIBLE_SECONDS = 1.0


def bounds(probe: Probe) -> v1.LoadCapabilities:
    """The advertised limits; skips where there are none, or none that make sense."""
    found = bounds_of(probe.declared)
    if found is None:
        probe.skip("the engine advertises no sane limits of scheduling_load")
    return found


def open_watch(probe: Probe, request: v1.WatchLoadRequest) -> LiveCall:
    """A load stream that has sent its settings."""
    return settled(probe, probe.start(WATCH, request, deadline=WATCH_SECONDS))


def open_slow_watch(probe: Probe, request: v1.WatchLoadRequest) -> SlowCall:
    """As `open_watch`, with a reader that can stop reading."""
    live = probe.start_slow(WATCH, request, deadline=WATCH_SECONDS)
    settled(probe, live)
    return live


def settled(probe: Probe, live: LiveCall) -> LiveCall:
    """Wait for the settings of a stream; without them it is ended and the check skips."""
    live.wait_event(1, probe.pace.unary_limit())
    if settings_of(sent(live.events)) is None:
        no_stream(probe, close(probe, live))
    return live


def no_stream(probe: Probe, call: Transcript) -> NoReturn:
    """The stream that a check needs did not come about."""
    probe.skip(f"no load stream to judge: {describe(call)}")


def granted(live: LiveCall) -> v1.WatchLoadSettings:
    """The settings of an open stream."""
    found = settings_of(sent(live.events))
    return v1.WatchLoadSettings() if found is None else found


def close(probe: Probe, live: LiveCall) -> Transcript:
    """Cancel a stream and take it over into the records."""
    live.cancel()
    return probe.finish(live)


def cancelled(call: Transcript) -> bool:
    """Whether a stream was open until this client ended it."""
    return call.acted(ActionKind.CANCEL)


def thorough(probe: Probe) -> bool:
    """Whether the budget has room for waits of ten seconds."""
    return probe.spending.max_requests >= THOROUGH_REQUESTS


def snapshots(live: LiveCall) -> tuple[Sent, ...]:
    """The snapshots so far."""
    return of_kind(sent(live.events), "snapshot")


def wait_for(probe: Probe, live: LiveCall, condition: Callable[[], bool], seconds: float) -> bool:
    """Ask `condition` until it holds, the stream ends or `seconds` have passed."""
    probe.wait_until(lambda: condition() or live.done, seconds)
    return condition()


def visible_limit(probe: Probe, live: LiveCall) -> float:
    """Seconds within which a change of the load has to be on this stream."""
    limits = bounds(probe)
    period = limits.sample_period_ms if limits.HasField("sample_period_ms") else 1000
    ms = granted(live).effective_min_interval_ms + period
    return probe.pace.required(ms / 1000 + VISIBLE_SECONDS) + probe.pace.unary


def silence_limit(probe: Probe, live: LiveCall) -> float:
    """Seconds that this stream may be silent; its heartbeats are on."""
    return probe.pace.required(longest_silence(granted(live)) / 1000)


def beat_seconds(probe: Probe) -> float:
    """The shortest heartbeat interval in seconds; skips where it takes too long to see one."""
    floor = bounds(probe).heartbeat_floor_ms
    if floor > LONGEST_BEAT_MS:
        probe.skip(f"the shortest heartbeat interval is {floor} ms", too_large=True)
    return float(floor / 1000)


def start_work(probe: Probe, tokens: int = LONG_TOKENS) -> LiveCall:
    """A running generation, which the load shows; long enough to be cancelled unless `tokens`
    says otherwise.
    """
    return probe.start_generate(Case(long_request(probe.declared, tokens)))


@contextmanager
def working(probe: Probe, live: LiveCall) -> Iterator[None]:
    """The load changes again and again while the block runs, where the engine generates; skips
    when `live`, which is to show that, has ended meanwhile.
    """
    running = start_work(probe) if probe.declared.generates else None
    yield
    if running is not None:
        close(probe, running)
    if live.done:
        no_stream(probe, probe.finish(live))


def uphold(probe: Probe) -> None:
    """Take over what the law of this row found, if it found something; else go on."""
    if any(ruling is not None for ruling, _ in probe.log.rulings.get(probe.requirement, [])):
        probe.settle()


def load_now(probe: Probe) -> v1.LoadInfo:
    """The answer of GetLoad; skips when there is none."""
    call = probe.call(GET_LOAD, v1.GetLoadRequest())
    message = call.messages[0] if call.ending.ok and call.messages else None
    if not isinstance(message, v1.LoadInfo):
        probe.skip(f"GetLoad gave no load: {describe(call)}")
    return message


def engine_clock(probe: Probe) -> int:
    """Unix nanoseconds on the engine's clock, as its latest load has them."""
    info = load_now(probe)
    if not info.HasField("timestamp_unix_nanos"):
        probe.skip("GetLoad tells no time")
    return info.timestamp_unix_nanos
