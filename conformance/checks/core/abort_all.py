"""Abort of everything, what aborted work gives back, and an abort that the engine refuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.core.abort_run import (
    END_SECONDS,
    OPEN_SHARE,
    abort_status,
    abort_table,
    delivered,
    margin,
    responses_of,
    run_abort,
    send_abort,
)
from conformance.checks.core.history import run_history
from conformance.checks.core.normal_end import ended_by_itself
from conformance.checks.core.release import at_rest, released
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies import simple_request
from conformance.strategies.actions import histories
from conformance.strategies.simple import PROSE, long_request
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import ActionKind, Transcript
from oe_wire import v1

# Requests that are started right after everything was aborted, one after another.
LATER = 3
LATER_TOKENS = 8


def abort_all(probe: Probe, streams: Iterable[LiveCall] = ()) -> Transcript:
    """Abort every request; noted in the transcripts of the given streams first."""
    for stream in streams:
        stream.act(ActionKind.ABORT)
    return probe.call("Control/Abort", v1.AbortRequest(all_requests=v1.AllRequests()))


def _counts(declared: Declared) -> Iterable[Case]:
    return [Case(long_request(declared), params={"requests": count}) for count in (3, 1)]


@check(
    "OE-CORE-ABORT-009",
    table=_counts,
    advice="Walk over a copy of the table of active requests, queued ones included, and answer "
    "ALREADY_FINISHED when it was empty.",
)
def abort_everything(probe: Probe, case: Case) -> None:
    """All active requests end; ABORTED when there was one, ALREADY_FINISHED when there was none."""
    at_rest(probe)
    live = _begun(probe, case, case.params["requests"])
    first = abort_all(probe, live)
    answered = [stream.elapsed for stream in live]
    limit = probe.pace.required(END_SECONDS) + margin(probe)
    probe.wait_until(lambda: all(stream.done for stream in live), limit)
    in_time = [stream.done for stream in live]
    for stream in live:
        stream.cancel()
    ends = [probe.finish(stream) for stream in live]
    if abort_status(first) != "ABORTED":
        wanted = f"ABORTED for {len(live)} active requests"
        probe.fail(wanted, abort_status(first), first)
    for ended, soon, at in zip(ends, in_time, answered, strict=True):
        if not soon:
            probe.fail("the end of every request", f"one still ran after {limit:.1f} s", ended)
        if _ran_on(ended, at):
            probe.fail("the end of every request", "one ran to its full length", ended)
    steering.idle(probe)
    again: list[Transcript] = []

    def nothing_left() -> bool:
        again.append(abort_all(probe))
        return abort_status(again[-1]) == "ALREADY_FINISHED"

    # Another client of the engine may be at work for a moment.
    if not probe.wait_until(nothing_left, probe.pace.required(END_SECONDS) / 5):
        probe.fail("ALREADY_FINISHED on an idle engine", abort_status(again[-1]), again[-1])


def _begun(probe: Probe, case: Case, count: int) -> list[LiveCall]:
    """That many running requests, each with a message seen; skips when they do not run at once."""
    live = [probe.start_generate(case) for _ in range(count)]
    limit = probe.pace.generate_limit(count)
    if not all(stream.wait_event(1, timeout=limit) for stream in live):
        probe.skip("the engine does not run as many requests at once")
    if any(stream.done for stream in live):
        probe.skip("a request ended before everything could be aborted")
    return live


def _ran_on(stream: Transcript, at: float) -> bool:
    """Whether a request reached its length that was far from it `at` seconds into its call: a fast
    engine does so within the time in which an aborted one has to end.
    """
    wanted = cast(v1.GenerateRequest, stream.request).stopping.max_tokens
    before = [event for event in stream.events if event.seconds <= at]
    reasons = [response.finished.reason for response in responses_of(stream)]
    return v1.FINISH_REASON_LENGTH in reasons and delivered(before, 0) < OPEN_SHARE * wanted


def _later(declared: Declared) -> Iterable[Case]:
    request = simple_request(declared, prompt=PROSE, max_tokens=LATER_TOKENS)
    request.stopping.ignore_eos = True
    return [Case(request, params={"active": active}) for active in (1, 0)]


@check(
    "OE-CORE-ABORT-010",
    table=_later,
    advice="Abort the requests that are active at that moment; a flag that says 'abort all' also "
    "hits those that come later.",
)
def later_requests_untouched(probe: Probe, case: Case) -> None:
    """A request that is sent after Abort of everything has answered runs to its end."""
    at_rest(probe)
    running = Case(long_request(probe.declared))
    live = _begun(probe, running, case.params["active"])
    answer = abort_all(probe, live)
    if not answer.ending.ok:
        probe.skip(f"Abort of everything failed: {describe(answer)}")
    later = [probe.generate(case) for _ in range(LATER)]
    for stream in live:
        stream.cancel()
        probe.finish(stream)
    for ended in later:
        ended_by_itself(probe, ended, "a request admitted after Abort")


@check(
    "OE-CORE-ABORT-012",
    table=abort_table,
    strategy=lambda _: histories(alone=True),
    advice="Free the blocks, the place in the batch and the counters of a request where its "
    "stream ends, whatever ended it.",
)
def aborted_work_released(probe: Probe, case: Case) -> None:
    """After an Abort the load returns to what it was, whatever else runs, ends or is refused."""
    before = at_rest(probe)
    if before is None:
        probe.skip("the engine does not tell running_requests")
    if "actions" in case.params:
        run_history(probe, case, alone=True)
        return
    run = run_abort(probe, case)
    if run.status != "ABORTED":
        probe.skip(f"Abort answered {run.status}, not ABORTED")
    released(probe, before, "Abort", run.stream)


def _long(declared: Declared) -> Iterable[Case]:
    return (Case(long_request(declared)),)


@check(
    "OE-CORE-ABORT-013",
    table=_long,
    advice="Report an abort that the engine could not carry out as an error of the call; the "
    "caller frees resources on ALREADY_FINISHED.",
)
def refused_abort_fails(probe: Probe, case: Case) -> None:
    """While the engine refuses to abort, Abort gives no OK."""
    request = probe.prepared(case)
    live = probe.start_generate(replace(case, request=request))
    if not live.wait_event(1):
        probe.skip(f"the request did not begin: {describe(probe.finish(live))}")
    with steering.fault(probe, v1.FAULT_KIND_ABORT_REFUSED, request_id=request.request_id):
        answer = send_abort(probe, request.request_id, live)
        ended = answer.ending.ok and live.wait_end(margin(probe))
    live.cancel()
    stream = probe.finish(live)
    if not answer.ending.ok:
        return
    if ended:
        probe.skip("the fault did not keep the request from being aborted")
    probe.fail("a status other than OK for a refused abort", abort_status(answer), stream)
