"""Requests and a pause: new ones are refused or held as reported, held ones can be given up."""

from __future__ import annotations

from collections.abc import Iterable

import grpc

from conformance.checks.admin.admin_calls import RESUME, ended, granted, pause, resumed
from conformance.checks.check import check
from conformance.checks.core.abort_run import END_SECONDS, abort_status, send_abort
from conformance.checks.core.judging import finishes, outcome
from conformance.checks.core.release import at_rest, released
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import paused
from conformance.model.case import Case
from conformance.strategies import simple_case
from conformance.strategies.simple import PROSE, long_request
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from oe_wire import v1

# Seconds without a message after which a new request counts as held.
HELD_SECONDS = 0.5
FEW_TOKENS = 4


def _few(declared: Declared) -> Iterable[Case]:
    return (simple_case(declared, prompt=PROSE, max_tokens=FEW_TOKENS),)


@check(
    "OE-ADM-008",
    table=_few,
    advice="Look at the pause where requests are admitted: REJECT answers UNAVAILABLE at once, "
    "HOLD puts the request into the queue that the resume starts again.",
)
def admission_as_reported(probe: Probe, case: Case) -> None:
    """New work during a pause is refused or held as paused_admission says."""
    scope = probe.declared.engine_scope
    admission = v1.PAUSED_ADMISSION_UNSPECIFIED if scope is None else scope.admin.paused_admission
    if admission == v1.PAUSED_ADMISSION_UNSPECIFIED:
        probe.skip("paused_admission is not reported")
    with paused(probe):
        live = probe.start_generate(case)
        live.wait_event(1, timeout=probe.pace.required(HELD_SECONDS))
        over = live.done or bool(live.events)
        back = probe.call(RESUME, v1.ResumeGenerationRequest())
        stream = probe.finish(live)
    if admission == v1.PAUSED_ADMISSION_REJECT:
        because = "the engine is paused, and paused_admission is REJECT"
        probe.expect_rejected(stream, grpc.StatusCode.UNAVAILABLE, because=because)
        return
    if over:
        wanted = "acceptance and silence: paused_admission is HOLD"
        probe.fail(wanted, outcome(stream), stream)
    if not back.ending.ok:
        probe.skip(f"the engine was not resumed: {describe(back)}")
    if not finishes(stream):
        probe.fail("the held request to run after the resume", outcome(stream), stream)


def _ways(declared: Declared) -> Iterable[Case]:
    """A request that ran when the pause began, or came after it; aborted, or cancelled."""
    scope = declared.engine_scope
    admin = v1.AdminCapabilities() if scope is None else scope.admin
    kinds = {
        "kept": v1.PAUSE_MODE_KEEP in admin.pause_modes,
        "new": admin.paused_admission == v1.PAUSED_ADMISSION_HOLD,
    }
    return [
        Case(long_request(declared), params={"held": kind, "way": way})
        for kind, possible in kinds.items()
        for way in ("abort", "cancel")
        if possible
    ]


@check(
    "OE-ADM-012",
    table=_ways,
    advice="Take aborted and cancelled requests out of the scheduler's lists at once, also while "
    "it is paused; do not leave that to its next step.",
)
def held_requests_end(probe: Probe, case: Case) -> None:
    """A held request ends by Abort or by cancellation while the engine is paused."""
    request = probe.prepared(case)
    before = at_rest(probe)
    with resumed(probe):
        if case.params["held"] == "kept":
            live = _begun(probe, request)
            granted(probe, pause(probe, v1.PAUSE_MODE_KEEP))
        else:
            granted(probe, pause(probe, v1.PAUSE_MODE_ABORT))
            live = probe.start_generate(Case(request))
            live.wait_event(1, timeout=probe.pace.required(HELD_SECONDS))
        if live.done:
            probe.skip("the request is not held: it has ended")
        if case.params["way"] == "abort":
            _abort(probe, live, request.request_id)
        elif before is not None:
            _cancel(probe, live, before)
        else:
            probe.skip("the engine does not tell its load, so the end of a request is not seen")


def _begun(probe: Probe, request: v1.GenerateRequest) -> LiveCall:
    live = probe.start_generate(Case(request))
    if not live.wait_event(1):
        probe.skip("the request did not begin")
    return live


def _abort(probe: Probe, live: LiveCall, request_id: str) -> None:
    call = send_abort(probe, request_id, live)
    status = abort_status(call)
    if status != "ABORTED":
        probe.fail("ABORTED for a held request", status, call)
    in_time = ended(probe, live, END_SECONDS)
    live.cancel()
    stream = probe.finish(live)
    if not in_time:
        wanted = f"the end of the held stream within {END_SECONDS:g} s of ABORTED"
        probe.fail(wanted, "it is open", stream)


def _cancel(probe: Probe, live: LiveCall, baseline: int) -> None:
    live.cancel()
    stream = probe.finish(live)
    released(probe, baseline, "the cancellation of a held request", stream)
