"""Checks of how the load follows what the engine does: at rest, at work, paused, and when read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.core.release import at_rest
from conformance.checks.probe import Probe, describe
from conformance.checks.scheduling_load.load_info import (
    get_load,
    get_load_name,
    load_of,
    watch_briefly,
)
from conformance.checks.scheduling_load.watching import (
    beat_seconds,
    close,
    open_watch,
    silence_limit,
)
from conformance.laws.load_info import measured
from conformance.model.case import Case
from conformance.strategies.simple import long_request
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Zero while nothing runs. The batch sizes are of the latest step, whenever that was.
ZERO_AT_REST = frozenset({"running_requests", "queued_requests"})
# Requests at a time: more than one, and few enough for any engine.
REQUESTS = 3
# Readers at a time (LOAD-012).
READERS = 20
# Without a reported period, a sample is at most this old (the fallback of sample_period_ms).
SAMPLE_SECONDS = 1.0


@check(
    "OE-LOAD-003",
    advice="Measure before you report: leave a scalar out when it is unknown, and report 0 only "
    "when 0 was counted.",
)
def zero_at_rest(probe: Probe, _: Case) -> None:
    """An engine without requests counts none, in what it reports at all."""
    if not measured(load_of(probe, get_load(probe))).keys() & ZERO_AT_REST:
        probe.skip("neither running nor queued requests are reported")
    last: list[Transcript] = []

    def all_zero() -> bool:
        last[:] = [get_load(probe)]
        return not _counted(load_of(probe, last[0]))

    limit = probe.pace.required(steering.RELEASE_SECONDS) + probe.pace.unary
    if not probe.wait_until(all_zero, limit):
        counted = _counted(load_of(probe, last[0]))
        probe.fail("0 on an engine without requests", ", ".join(counted), last[0], 0)


def _counted(info: v1.LoadInfo) -> list[str]:
    found = measured(info)
    return [f"{name} {found[name]}" for name in sorted(ZERO_AT_REST) if found.get(name)]


@check(
    "OE-LOAD-009",
    advice="Count a request from its acceptance until its last event has been handed over, once, "
    "whatever the number of its outputs.",
)
def running_counted(probe: Probe, _: Case) -> None:
    """Several long requests raise running_requests by their number; their end lowers it again."""
    # A cancelled request may count for 5 s more: as one of the baseline it would be missed later.
    at_rest(probe)
    baseline = _running(probe)
    calls = _start(probe, REQUESTS)
    wanted = baseline + len(calls)
    seen: list[int] = []

    def all_counted() -> bool:
        seen.append(_running(probe))
        return seen[-1] == wanted

    counted = probe.wait_until(all_counted, _sample_limit(probe))
    if not counted and not any(live.done for live in calls):
        probe.fail(f"running_requests {wanted} while {len(calls)} requests run", f"{seen[-1]}")
    for live in calls:
        live.cancel()
        probe.finish(live)
    if not counted:
        probe.skip("a long request ended before it was counted")
    if not steering.idle(probe, baseline):
        limit = f"{steering.RELEASE_SECONDS:g} s"
        probe.fail(f"running_requests back to {baseline} within {limit}", f"{_running(probe)}")


def _running(probe: Probe) -> int:
    info = load_of(probe, get_load(probe))
    if not info.HasField("running_requests"):
        probe.skip("running_requests is not reported")
    return info.running_requests


def _start(probe: Probe, count: int) -> Sequence[LiveCall]:
    """So many long requests, each with a message seen; the last one makes several outputs."""
    calls = []
    for number in range(count):
        outputs = min(2, probe.declared.max_num_sequences) if number == count - 1 else 1
        request = long_request(probe.declared, sequences=outputs)
        calls.append(probe.start_generate(Case(request)))
    if not all(live.wait_event(1) for live in calls):
        probe.skip(f"the engine does not run {count} requests at once")
    return calls


def _sample_limit(probe: Probe) -> float:
    """Seconds after which a sample shows what has been the case for so long."""
    scope = probe.declared.engine_scope
    period = SAMPLE_SECONDS
    if scope is not None and scope.observability.load.HasField("sample_period_ms"):
        period = scope.observability.load.sample_period_ms / 1000
    return probe.pace.required(period + SAMPLE_SECONDS) + probe.pace.unary


@check(
    "OE-LOAD-010",
    advice="Sample the load for GetLoad whether or not somebody watches it.",
)
def beside_streams(probe: Probe, _: Case) -> None:
    """GetLoad answers before a stream is opened, while it is open, and after it was closed."""
    _must_answer(probe, "no load stream is opened")
    live = open_watch(probe, v1.WatchLoadRequest())
    _must_answer(probe, "a load stream is open")
    close(probe, live)
    _must_answer(probe, "a load stream was closed")


def _must_answer(probe: Probe, when: str) -> None:
    call = get_load(probe)
    if not call.ending.ok:
        probe.fail(f"an answer of GetLoad when {when}", describe(call), call)


def _every_way(_: Declared) -> Iterable[Case]:
    return [Case(params={"rpc": rpc}) for rpc in ("GetLoad", "WatchLoad", "open")]


@check(
    "OE-LOAD-011",
    table=_every_way,
    advice="Keep sampling and answering while generation is paused, and keep load streams open.",
)
def while_paused(probe: Probe, case: Case) -> None:
    """GetLoad, a new stream and an open one all answer during a pause."""
    kind = case.params["rpc"]
    if kind == "open":
        return _open_goes_on(probe)
    with steering.paused(probe):
        call = get_load(probe) if kind == "GetLoad" else watch_briefly(probe)
    expected = "a LoadInfo" if kind == "GetLoad" else "settings and a snapshot"
    count = 1 if kind == "GetLoad" else 2
    if len(call.events) < count:
        _silent(probe, expected, call)
    return None


def _open_goes_on(probe: Probe) -> None:
    """A stream with the shortest heartbeat brings something during the pause."""
    beat = int(1000 * beat_seconds(probe))
    live = open_watch(probe, v1.WatchLoadRequest(heartbeat_interval_ms=beat))
    with steering.paused(probe):
        before = len(live.events)
        came = live.wait_event(before + 1, silence_limit(probe, live) + probe.pace.unary)
    call = close(probe, live)
    if not came:
        _silent(probe, "an open load stream that goes on", call)


def _silent(probe: Probe, expected: str, call: Transcript) -> NoReturn:
    probe.fail(f"{expected} while paused", describe(call), call)


@check(
    "OE-LOAD-012",
    advice="Answer readers from the latest sample; do not count, block or change anything when "
    "the load is read.",
)
def reading_changes_nothing(probe: Probe, _: Case) -> None:
    """Many readers at once see the same idle engine, and so does one before and one after.

    What an engine tidies up on its own after the last request may take a few rounds to settle.
    """
    if not steering.idle(probe):
        probe.skip("the engine is not idle")
    odd: list[tuple[str, Transcript]] = []

    def all_equal() -> bool:
        odd[:] = _differing(probe, _readings(probe))
        return not odd

    limit = probe.pace.required(steering.RELEASE_SECONDS)
    if not probe.wait_until(all_equal, limit):
        name, call = odd[0]
        expected = "the same load for every reader of an idle engine"
        probe.fail(expected, f"another {name}", call, 0)


def _readings(probe: Probe) -> list[Transcript]:
    before = get_load(probe)
    name = get_load_name(probe.declared)
    lives = [probe.start(name, v1.GetLoadRequest()) for _ in range(READERS)]
    return [before, *map(probe.finish, lives), get_load(probe)]


def _differing(probe: Probe, calls: Sequence[Transcript]) -> list[tuple[str, Transcript]]:
    """The names of values that differ from those of the first call, and in which call."""
    found = [_values(load_of(probe, call)) for call in calls]
    return [
        (name, call)
        for call, values in zip(calls, found, strict=True)
        for name in sorted({name for name, _ in values.items() ^ found[0].items()})
    ]


def _values(info: v1.LoadInfo) -> dict[str, int]:
    """What was measured, but for the time of the measurement."""
    found = measured(info)
    found.pop("timestamp_unix_nanos", None)
    return found
