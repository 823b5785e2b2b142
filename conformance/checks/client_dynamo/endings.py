"""How requests are ended and refused, as a sidecar does it and reads it (needs 31 to 33)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import grpc

from conformance.checks.client_dynamo.need import LONG_TOKENS, need, sidecar_request
from conformance.checks.core.abort_run import abort_status, send_abort
from conformance.checks.core.judging import completed, send_cut
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies import simple_request
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Statuses that the sidecar turns into a client's error, which costs the engine nothing.
CLIENTS_FAULT = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
STATUSES = frozenset({"ABORTED", "ALREADY_FINISHED"})
# Seconds in which the id of a cancelled request must be free again (CANCEL-001).
FREE_SECONDS = 5.0


def _long(declared: Declared) -> Iterable[Case]:
    request = sidecar_request(declared, LONG_TOKENS)
    request.stopping.ignore_eos = True
    yield Case(request)


def _wrong(declared: Declared) -> Iterable[Case]:
    """Requests that no engine can serve, one of them too long for the reported window."""
    nothing = simple_request(declared)
    nothing.ClearField("prompt")
    nothing.ClearField("token_ids")
    yield Case(nothing)
    unnamed = simple_request(declared)
    unnamed.model = ""
    yield Case(unnamed)
    window = 0 if declared.model is None else declared.model.max_context_length
    if 0 < window <= 32768 and declared.model is not None:
        long = sidecar_request(declared)
        long.token_ids.ids[:] = [long.token_ids.ids[0]] * (window + 1)
        if declared.model.supports_token_ids_input:
            yield Case(long)


@need(
    31,
    advice="Answer Abort of an id that is gone with ALREADY_FINISHED or NOT_FOUND, and look it up "
    "among running requests only: an id may be in use again.",
    table=_long,
)
def abort_after_cancel(probe: Probe, case: Case) -> None:
    """The Abort that follows every cancelled stream is harmless."""
    request = probe.prepared(case)
    live = probe.start_generate(replace(case, request=request))
    begun = live.wait_event(1, timeout=probe.pace.generate_limit(1))
    live.cancel()
    probe.finish(live)
    if not begun:
        probe.skip("the request did not begin")
    call = send_abort(probe, request.request_id)
    if not (call.ending.ok or call.ending.code is grpc.StatusCode.NOT_FOUND):
        probe.fail("OK or NOT_FOUND", describe(call), call)
    again = v1.GenerateRequest()
    again.CopyFrom(request)
    again.stopping.max_tokens = 4
    calls: list[Transcript] = []

    def taken() -> bool:
        calls.append(probe.generate(Case(again)))
        return calls[-1].ending.code is not grpc.StatusCode.ALREADY_EXISTS

    if not probe.wait_until(taken, probe.pace.required(FREE_SECONDS)):
        probe.skip("the id was not free again in time, which is not this need's matter")
    completed(probe, calls[-1])
    if any(_cancelled(message) for message in calls[-1].messages):
        probe.fail("the second request to run", "CANCELLED by the Abort of the first", calls[-1])


def _cancelled(message: object) -> bool:
    return (
        isinstance(message, v1.GenerateResponse)
        and message.finished.reason == v1.FINISH_REASON_CANCELLED
    )


@need(32, advice="Set the status of every AbortResponse.", table=_long)
def abort_says_what_it_did(probe: Probe, case: Case) -> None:
    """Abort of a running request and of a finished one answers with a status."""
    request = probe.prepared(case)
    live = probe.start_generate(replace(case, request=request))
    live.wait_event(1, timeout=probe.pace.generate_limit(1))
    first = send_abort(probe, request.request_id, live)
    if not live.wait_end(probe.pace.required(FREE_SECONDS)):
        live.cancel()
    probe.finish(live)
    answered = [call for call in (first, send_abort(probe, request.request_id)) if call.ending.ok]
    for call in answered:
        if abort_status(call) not in STATUSES:
            probe.fail("ABORTED or ALREADY_FINISHED", abort_status(call), call)
    if not answered:
        probe.skip(f"Abort was not answered: {describe(first)}")


@need(
    33,
    advice="Refuse wrong requests, those too long for the window included, with a status that "
    "names the client's fault.",
    table=_wrong,
)
def refusals_blame_the_client(probe: Probe, case: Case) -> None:
    """A wrong request gives a status that the sidecar passes on as the client's fault."""
    request = probe.prepared(case)
    call = send_cut(probe, case, request)
    if not call.rejected:
        probe.skip("the request was not refused")
    if call.ending.code not in CLIENTS_FAULT:
        expected = " or ".join(sorted(code.name for code in CLIENTS_FAULT))
        probe.fail(expected, describe(call), call)
