"""Checks of a load stream whose reader does not read: what it is sent, and whom it holds up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.probe import Probe, describe
from conformance.checks.scheduling_load.watching import (
    GET_LOAD,
    cancelled,
    close,
    engine_clock,
    no_stream,
    open_slow_watch,
    open_watch,
    snapshots,
    start_work,
    thorough,
    visible_limit,
    wait_for,
    working,
)
from conformance.laws.load_stream import Sent, of_kind, sent
from conformance.model.case import Case
from conformance.strategies.watch_load import fast_request, quiet_request
from conformance.wire.declared import Declared
from oe_wire import v1

# A snapshot may be this old when it is called current (LOAD-038), and the first one has to come
# within it. The stall is longer, or else all that was kept back would still be current.
CURRENT_SECONDS = 2.0
STALL_SECONDS = 2.4
THOROUGH_SECONDS = 10.0
# Requests that a check may make, from which on there is time for the long stall.
LONG_STALL_REQUESTS = 300
SHORT_SECONDS = 0.2
# Bytes of old responses that a transport may hold between the two ends.
TRANSPORT_BYTES = 256 * 1024
NANOS_PER_SECOND = 1_000_000_000
# Snapshots of another stream in whose time a stalled one has filled its window of 256 bytes.
FILLING = 15
FILL_SECONDS = 1.5
# An answer that waits for a slow reader takes as long as the reader does.
PROMPT_SECONDS = 2.0
# Tokens of a generation that has to go on beside a slow reader.
TOKENS = 8


def _stalls(_: Declared) -> Iterable[Case]:
    """Short stalls show that a stream goes on at all, only the long one that it keeps no queue."""
    yield Case(params={"long": False, "busy": False})
    yield Case(params={"long": False, "busy": True})
    yield Case(params={"long": True, "busy": True})


@check(
    "OE-LOAD-038",
    table=_stalls,
    advice="Keep one snapshot for a slow reader and replace it by the next; never a queue.",
)
def slow_reader_gets_the_present(probe: Probe, case: Case) -> None:
    """A reader that pauses, while the load changes, soon gets a current response afterwards."""
    if case.params["long"] and probe.spending.max_requests < LONG_STALL_REQUESTS:
        probe.skip("the long stall is for the larger budgets")
    live = open_slow_watch(probe, quiet_request())
    live.wait_event(2, visible_limit(probe, live))
    running = start_work(probe) if case.params["busy"] else None
    if running is not None:
        running.wait_event(1)
    live.stall()
    stall = THOROUGH_SECONDS if thorough(probe) else STALL_SECONDS
    probe.wait_until(lambda: live.done, stall if case.params["long"] else SHORT_SECONDS)
    seen = len(live.events)
    live.resume()
    # The engine's clock at the start of the call, so that ages can be told at arrival.
    zero = engine_clock(probe) / NANOS_PER_SECOND - live.elapsed
    # One more change, so that something is new in any case.
    extra = start_work(probe)
    begun = extra.wait_event(1)

    def current() -> Sent | None:
        return next((each for each in sent(live.events)[seen:] if _fresh(each, zero)), None)

    limit = probe.pace.required(CURRENT_SECONDS) + probe.pace.unary
    wait_for(probe, live, lambda: current() is not None, limit)
    for work in filter(None, (running, extra)):
        close(probe, work)
    call = close(probe, live)
    late = sent(call.events)[seen:]
    if not (late and begun and cancelled(call)):
        no_stream(probe, call)
    found = next((each for each in late if _fresh(each, zero)), None)
    if found is None:
        actual = f"{len(late)} responses, all of them older"
        probe.fail(f"a response of the last {CURRENT_SECONDS:g} s", actual, call)
    if (old := _bytes_before(found, late)) > TRANSPORT_BYTES:
        probe.fail(f"at most {TRANSPORT_BYTES} bytes of older responses", f"{old} bytes", call)


def _fresh(each: Sent, zero: float) -> bool:
    """Whether a response was current when it came, or tells that older ones were left out. zero:
    Unix seconds on the engine's clock at the start of the call.
    """
    age = zero + each.seconds - each.response.timestamp_unix_nanos / NANOS_PER_SECOND
    return age <= CURRENT_SECONDS or each.response.coalesced_events > 0


def _bytes_before(found: Sent, responses: Sequence[Sent]) -> int:
    return sum(each.response.ByteSize() for each in responses if each.event < found.event)


@check(
    "OE-LOAD-039",
    advice="Write to each stream in a task of its own, and let nothing wait for such a write.",
)
def slow_reader_delays_nobody(probe: Probe, _: Case) -> None:
    """Beside a stalled stream another one, GetLoad and generation go on."""
    slow = open_slow_watch(probe, quiet_request())
    slow.stall()
    other = open_watch(probe, fast_request(probe.declared))
    with working(probe, other):
        wait_for(probe, other, lambda: len(snapshots(other)) >= FILLING, FILL_SECONDS)
        count = len(snapshots(other)) + 1
        limit = visible_limit(probe, other)
        if not wait_for(probe, other, lambda: len(snapshots(other)) >= count, limit):
            call = close(probe, other)
            if not cancelled(call):
                no_stream(probe, call)
            probe.fail("snapshots on another stream", f"none within {limit:.1f} s", call)
        limit = probe.pace.required(PROMPT_SECONDS) + 20 * probe.pace.unary
        load = probe.call(GET_LOAD, v1.GetLoadRequest(), deadline=limit)
        if not load.ending.ok:
            probe.fail(f"GetLoad within {limit:.1f} s", describe(load), load)
    generation = probe.finish(start_work(probe, TOKENS))
    if not generation.ending.ok:
        probe.fail("a generation to its end", describe(generation), generation)
    close(probe, other)
    close(probe, slow)


@check(
    "OE-LOAD-040",
    advice="Replace only snapshots that wait: the settings and the error have places of their own.",
)
def slow_reader_gets_both_ends(probe: Probe, _: Case) -> None:
    """A reader that pauses until the stream has failed still gets the settings and the error."""
    live = probe.start_slow(f"{steering.OBSERVABILITY}/WatchLoad", quiet_request())
    live.stall()
    running = start_work(probe) if probe.declared.generates else None
    probe.wait_until(lambda: live.done, FILL_SECONDS / 3)
    with steering.fault(probe, v1.FAULT_KIND_EVENT_SOURCE_FAILS):
        # It has to fail while nobody reads.
        probe.wait_until(lambda: live.done, SHORT_SECONDS)
        live.resume()
        ended = live.wait_end(probe.pace.required(CURRENT_SECONDS) + probe.pace.unary)
        call = close(probe, live)
    if running is not None:
        close(probe, running)
    responses = sent(call.events)
    if not responses:
        no_stream(probe, call)
    if responses[0].kind != "settings":
        probe.fail("the settings first", f"a {responses[0].kind}", call, 0)
    if not ended:
        probe.skip("the stream did not fail with its source")
    if not of_kind(responses, "error"):
        probe.fail("an EngineError at the end", describe(call), call)
