"""A reader that does not read (STREAM-028)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from conformance.checks.check import check
from conformance.checks.core.judging import engine_errors, error_name
from conformance.checks.core.stream_cases import prose
from conformance.checks.probe import Probe, describe
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.strategies.simple import long_request
from conformance.wire.declared import Declared
from conformance.wire.transcript import ActionKind, Origin, Transcript
from oe_wire import v1

# Stalls shorter than the limit, as a share of it, and never longer than this.
SHORT_SHARE = 0.25
SHORT_SECONDS = 0.5
# A stall that took a larger share, on a loaded machine, says nothing about "no earlier".
LATE_SHARE = 0.5
# The longest limit that is waited for, by the requests that a check may make: a quick run waits for
# none, a thorough one for the limits of real engines.
LONGEST_SECONDS = ((4000, 120.0), (300, 5.0), (0, 0.0))
# After the limit, until the engine must have noticed.
MARGIN_SECONDS = 1.0
TOKENS = 800
TOP_N = 20
# Messages after a short stall that show a stream which goes on.
ENOUGH_MESSAGES = 60
# More than the transport between an engine and this reader holds.
WINDOW_BYTES = 256 * 1024


def _stalls(declared: Declared) -> Iterable[Case]:
    request = long_request(declared, TOKENS)
    model = declared.model if declared.model is not None else v1.ModelInfo()
    offer = model.generation.output_logprobs
    if v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N in offer.candidate_selection_modes:
        # Larger messages, so that windows are full after fewer tokens.
        request.response.return_output_logprobs = True
        request.response.output_candidates.top_n = max(1, min(offer.max_top_n, TOP_N))
    return [Case(request, params={"stall": stall}) for stall in ("short", "long")]


@dataclass(frozen=True, slots=True)
class Stall:
    """One call whose reader stopped: the call, what had come before, and another stream meanwhile.

    seconds: how long nothing was read.
    """

    call: Transcript
    before: int
    seconds: float
    other: Transcript


@check(
    "OE-CORE-STREAM-028",
    advice="Give each stream a bounded queue of its own, time its writes, and end it with "
    "EngineError OVERLOADED (retryable) only when nothing was read for response_stall_timeout_ms.",
    table=_stalls,
    waits=SHORT_SECONDS,
)
def stalled_reader(probe: Probe, case: Case) -> None:
    """A reader that stalls for a while goes on; one that stalls for too long is told so; nobody
    else notices.
    """
    limit = _limit_seconds(probe.declared)
    if case.params["stall"] == "short":
        seconds = min(SHORT_SHARE * limit, SHORT_SECONDS) if limit else SHORT_SECONDS
        _judge_short(probe, _run(probe, case, seconds), limit)
        return
    if not limit:
        probe.skip("a stall is never ended on this engine")
    if limit > _longest_seconds(probe):
        probe.skip(f"a stall of {limit:.0f} s takes too long", too_large=True)
    _judge_long(probe, _run(probe, case, limit + MARGIN_SECONDS * probe.pace.slow_factor))


def _longest_seconds(probe: Probe) -> float:
    allowed = probe.spending.max_requests
    return next(seconds for requests, seconds in LONGEST_SECONDS if allowed >= requests)


def _limit_seconds(declared: Declared) -> float:
    """The advertised limit; 0 = never."""
    scope = declared.capabilities
    return 0.0 if scope is None else scope.core.response_stall_timeout_ms / 1000


def _run(probe: Probe, case: Case, seconds: float) -> Stall:
    request = probe.prepared(case)
    call = probe.start_slow(GENERATE, request, deadline=probe.limit(request) + seconds)
    if not call.wait_event(1):
        probe.skip(f"no event to stop after: {describe(probe.finish(call))}")
    call.stall()
    start = call.elapsed
    other = probe.generate(Case(prose(probe.declared)))
    probe.wait_until(lambda: call.done, max(0.0, start + seconds - call.elapsed))
    before, stalled = len(call.events), call.elapsed - start
    call.resume()
    if case.params["stall"] == "short":
        # Enough to show that it goes on; what was written before comes first.
        call.wait_event(before + ENOUGH_MESSAGES)
        call.cancel()
    return Stall(probe.finish(call), before, stalled, other)


def _judge_short(probe: Probe, stall: Stall, limit: float) -> None:
    _judge_other(probe, stall)
    unread = _unread_seconds(stall)
    if limit and unread > LATE_SHARE * limit:
        probe.skip(f"the reader stalled for {unread:.1f} s, too near to the limit")
    expected = f"a stream that goes on after {stall.seconds:.1f} s without reading"
    for at, error in engine_errors(stall.call):
        probe.fail(expected, f"EngineError {error_name(error)}", stall.call, at)
    if not stall.call.ending.ok and not stall.call.acted(ActionKind.CANCEL):
        probe.fail(expected, describe(stall.call), stall.call)


def _unread_seconds(stall: Stall) -> float:
    """The longest time without a message: the stall that was meant, or one that this process made
    when the machine held it up before it read on.
    """
    times = [event.seconds for event in stall.call.events[max(0, stall.before - 1) :]]
    return max([stall.seconds, *(later - earlier for earlier, later in pairwise(times))])


def _judge_long(probe: Probe, stall: Stall) -> None:
    _judge_other(probe, stall)
    expected = "EngineError OVERLOADED with retryable true, or a transport error"
    for at, error in engine_errors(stall.call):
        if error.code != v1.ERROR_CODE_OVERLOADED or not error.retryable:
            word = "retryable" if error.retryable else "not retryable"
            probe.fail(expected, f"EngineError {error_name(error)}, {word}", stall.call, at)
        return
    if not stall.call.ending.ok:
        return
    came = sum(message.ByteSize() for message in stall.call.messages[stall.before :])
    if came <= WINDOW_BYTES:
        probe.skip("what was left of the stream fitted into the windows")
    actual = f"the rest of the stream after {stall.seconds:.1f} s without reading"
    probe.fail(expected, actual, stall.call)


def _judge_other(probe: Probe, stall: Stall) -> None:
    """The stream beside it ends as if nothing were."""
    ending = stall.other.ending
    if not ending.ok and ending.origin is Origin.LOCAL:
        probe.fail("another stream unaffected", describe(stall.other), stall.other)
