"""What each pause mode does to the requests that run, and what UNSPECIFIED means."""

from __future__ import annotations

from collections.abc import Iterable

import grpc

from conformance.checks.admin.admin_calls import (
    INFERENCE,
    admin_state,
    ended,
    granted,
    mode_name,
    pause,
    resumed,
    scheduler_name,
)
from conformance.checks.check import check
from conformance.checks.core.abort_run import END_SECONDS, margin
from conformance.checks.core.judging import engine_errors, finishes, outcome
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import pause_modes, serving
from conformance.model.case import Case
from conformance.strategies.simple import long_request
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Tokens of a request that is to run for a while after the pause began, and then end by itself.
SOME_TOKENS = 48
# How long a pause may wait for a request that takes far longer.
TOO_SHORT_MS = 20
# A stream must have ended within these seconds.
STOP_SECONDS = 5.0


def _outputs(declared: Declared) -> Iterable[Case]:
    most = min(2, declared.max_num_sequences)
    return [Case(long_request(declared, sequences=count)) for count in range(1, most + 1)]


@check(
    "OE-ADM-004",
    table=_outputs,
    advice="Pause by ABORT as Abort(all_requests) does: end each open output once, and the stream "
    "with OK.",
)
def abort_ends_streams(probe: Probe, case: Case) -> None:
    """A pause by ABORT ends a running stream in time, each output once, with OK."""
    request = probe.prepared(case)
    with resumed(probe):
        live = probe.start_generate(Case(request))
        begun = live.wait_event(1)
        call = pause(probe, v1.PAUSE_MODE_ABORT)
        in_time = ended(probe, live, END_SECONDS)
        live.cancel()
        stream = probe.finish(live)
    granted(probe, call)
    if not begun:
        probe.skip(f"the request did not begin: {describe(stream)}")
    if not in_time:
        wanted = f"the end of the stream within {END_SECONDS:g} s of the pause"
        probe.fail(wanted, "it still runs", stream)
    count = max(1, request.sampling.num_sequences)
    terminal = [finished.output_index for _, finished in finishes(stream)]
    errors = len(list(engine_errors(stream)))
    ends = [terminal.count(index) for index in range(count)]
    # An EngineError ends every output that has not ended before.
    if max(ends) > 1 or errors != (0 in ends):
        wanted = "one terminal event for each output"
        probe.fail(wanted, f"{len(terminal)} finished, {errors} errors", stream)
    if not stream.ending.ok:
        probe.fail("OK after the terminal events", describe(stream), stream)


def _waits(declared: Declared) -> Iterable[Case]:
    cases = [
        Case(long_request(declared, SOME_TOKENS), params={"wait": "finishes"}),
        Case(long_request(declared), params={"wait": "expires"}),
        Case(params={"wait": "zero"}),
    ]
    scope = declared.engine_scope
    modes = () if scope is None else scope.admin.pause_modes
    others = [mode for mode in dict.fromkeys(modes) if mode not in (0, v1.PAUSE_MODE_WAIT)]
    return cases + [Case(params={"wait": "other mode", "mode": mode}) for mode in others]


@check(
    "OE-ADM-005",
    table=_waits,
    advice="Answer a pause by WAIT after the last running request; when timeout_ms runs out first, "
    "answer DEADLINE_EXCEEDED and admit requests again. timeout_ms has no other use.",
)
def wait_finishes(probe: Probe, case: Case) -> None:
    """WAIT lets requests finish, or gives up and runs on; its timeout is validated."""
    match case.params["wait"]:
        case "finishes":
            _finishes(probe, case)
        case "expires":
            _expires(probe, case)
        case "zero":
            _refused(probe, v1.PAUSE_MODE_WAIT, 0)
        case _:
            _refused(probe, case.params["mode"], 1000)


def _finishes(probe: Probe, case: Case) -> None:
    with resumed(probe):
        live = probe.start_generate(case)
        begun = live.wait_event(1)
        call = pause(probe, v1.PAUSE_MODE_WAIT)
        in_time = ended(probe, live, STOP_SECONDS)
        live.cancel()
        stream = probe.finish(live)
    if not begun:
        probe.skip(f"the request did not begin: {describe(stream)}")
    if not call.ending.ok:
        probe.fail("OK from a pause by WAIT", describe(call), call)
    if not in_time:
        probe.fail("the running request finished when WAIT answers", "it still runs", stream)
    _finished_by_itself(probe, stream)


def _finished_by_itself(probe: Probe, stream: Transcript) -> None:
    reasons = {finished.reason for _, finished in finishes(stream)}
    natural = {v1.FINISH_REASON_STOP, v1.FINISH_REASON_LENGTH}
    if not reasons or not reasons <= natural:
        probe.fail("a running request finished by itself", outcome(stream), stream)


def _expires(probe: Probe, case: Case) -> None:
    with resumed(probe):
        live = probe.start_generate(case)
        begun = live.wait_event(1)
        call = pause(probe, v1.PAUSE_MODE_WAIT, timeout_ms=TOO_SHORT_MS)
        # A pause that was granted holds what it did not wait for.
        outlasted = not (ended(probe, live, STOP_SECONDS) if call.ending.ok else live.done)
        state = admin_state(probe)
        limit = probe.pace.required(1.0) + margin(probe)
        healthy = probe.wait_until(lambda: serving(probe, INFERENCE) == "SERVING", limit)
        live.cancel()
        stream = probe.finish(live)
    if not begun or not outlasted:
        probe.skip("the running request did not outlast the timeout")
    if call.ending.code is not grpc.StatusCode.DEADLINE_EXCEEDED:
        probe.fail("DEADLINE_EXCEEDED when timeout_ms runs out", describe(call), call)
    if state.message.scheduler != v1.SCHEDULER_STATE_RUNNING:
        wanted = "RUNNING again after DEADLINE_EXCEEDED"
        probe.fail(wanted, scheduler_name(state.message), state.call)
    if not healthy:
        probe.fail("SERVING again after DEADLINE_EXCEEDED", "another status", call)
    if any(finished.reason == v1.FINISH_REASON_CANCELLED for _, finished in finishes(stream)):
        probe.fail("the running request to go on", outcome(stream), stream)


def _refused(probe: Probe, mode: int, timeout_ms: int) -> None:
    with resumed(probe):
        call = pause(probe, mode, timeout_ms=timeout_ms)
    because = f"timeout_ms is {timeout_ms} with {mode_name(mode)}"
    probe.expect_rejected(call, grpc.StatusCode.INVALID_ARGUMENT, because=because)


def _modes(declared: Declared) -> Iterable[Case]:
    scope = declared.engine_scope
    modes = () if scope is None else tuple(scope.admin.pause_modes)
    known = (v1.PAUSE_MODE_ABORT, v1.PAUSE_MODE_WAIT, v1.PAUSE_MODE_KEEP)
    unlisted = [Case(params={"mode": mode}) for mode in known if mode not in modes]
    return [Case(params={"mode": v1.PAUSE_MODE_UNSPECIFIED}), *unlisted]


@check(
    "OE-ADM-007",
    table=_modes,
    advice="Map UNSPECIFIED to ABORT first, then look the mode up in pause_modes.",
)
def modes_resolved(probe: Probe, case: Case) -> None:
    """UNSPECIFIED is ABORT, and an unlisted mode is refused."""
    mode = case.params["mode"]
    unspecified = mode == v1.PAUSE_MODE_UNSPECIFIED
    meant = v1.PAUSE_MODE_ABORT if unspecified else mode
    with resumed(probe):
        call = pause(probe, mode)
    if meant not in pause_modes(probe):
        because = f"{mode_name(meant)} is not among pause_modes"
        probe.expect_rejected(call, grpc.StatusCode.INVALID_ARGUMENT, because=because)
        return
    state = granted(probe, call)
    if state.pause_mode != v1.PAUSE_MODE_ABORT:
        probe.fail("ABORT for UNSPECIFIED", mode_name(state.pause_mode), call)
