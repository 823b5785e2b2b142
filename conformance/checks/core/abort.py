"""Abort: what it answers for each kind of id, and how it ends the stream of a running request."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

import grpc
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.checks.check import check
from conformance.checks.core.abort_run import (
    END_SECONDS,
    abort_cases,
    abort_status,
    abort_table,
    margin,
    responses_of,
    run_abort,
    send_abort,
)
from conformance.checks.core.discovery_calls import capabilities
from conformance.checks.core.history import run_history
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies.actions import histories
from conformance.strategies.simple import long_request
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Ids of other checks begin with "oe-" and hex digits, so this prefix keeps a drawn id unseen.
UNSEEN = "never-seen-"
_ID_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/"
# Seconds between the end of a request and its Abort: what the row's check asks for.
AFTER_END = 0.1
# An answer that is due within the retention is asked for this much before its end.
RETENTION_SLACK = 0.5
# Longer windows are not waited for: an answer after them may be either anyway.
LONGEST_WAIT = 2.0
# Tokens of a request that must outlive two Aborts of another one.
BYSTANDER_TOKENS = 64


def _unseen_table(_: Declared) -> Iterable[Case]:
    return (Case(params={"id": f"{UNSEEN}0f4e"}), Case(params={"id": ""}))


def _unseen_ids(_: Declared) -> SearchStrategy[Case]:
    tails = st.text(_ID_LETTERS, min_size=1, max_size=40)
    return tails.map(lambda tail: Case(params={"id": f"{UNSEEN}{tail}"}))


def _finished_table(declared: Declared) -> Iterable[Case]:
    """Aborts soon after the end, and after the retention when it is short enough to wait for."""
    cases = [_finished_case(declared, tokens, "soon") for tokens in (1, 4)]
    if 0 < _retention(declared) <= LONGEST_WAIT:
        cases.append(_finished_case(declared, 1, "late"))
    return cases


def _finished_case(declared: Declared, tokens: int, when: str) -> Case:
    return Case(long_request(declared, tokens), params={"when": when})


def _retention(declared: Declared) -> float:
    """Seconds for which finished ids are remembered, 0 when unreported."""
    scope = declared.capabilities
    return 0.0 if scope is None else scope.core.finished_request_retention_ms / 1000


def _twice_table(declared: Declared) -> Iterable[Case]:
    """The bystander's id is unrelated to the aborted one, or begins with it."""
    request = long_request(declared)
    return [Case(request, params={"bystander": kind}) for kind in ("unrelated", "longer")]


@check(
    "OE-CORE-ABORT-001",
    advice="Check that the target oneof of AbortRequest is set before anything else.",
)
def abort_without_target(probe: Probe, _: Case) -> None:
    """An Abort that names nothing gives INVALID_ARGUMENT."""
    call = probe.call("Control/Abort", v1.AbortRequest())
    probe.expect_rejected(call, grpc.StatusCode.INVALID_ARGUMENT, because="no target is set")


@check(
    "OE-CORE-ABORT-002",
    table=_unseen_table,
    strategy=_unseen_ids,
    advice="Look the id up among active and lately finished requests: NOT_FOUND when it is in "
    "neither, INVALID_ARGUMENT when it is empty.",
)
def abort_unseen(probe: Probe, case: Case) -> None:
    """An unknown id gives NOT_FOUND and an empty one INVALID_ARGUMENT."""
    request_id = case.params["id"]
    call = send_abort(probe, request_id)
    code, why = grpc.StatusCode.NOT_FOUND, "no request has this id"
    if not request_id:
        code, why = grpc.StatusCode.INVALID_ARGUMENT, "the request id is empty"
    if probe.declared.legacy and abort_status(call) == "ALREADY_FINISHED":
        # v0.1.0 servers forget finished ids and cannot tell them from unknown ones.
        probe.tolerate(code.name, "OK with ALREADY_FINISHED", call)
    probe.expect_rejected(call, code, because=why)


@check(
    "OE-CORE-ABORT-003",
    table=abort_table,
    strategy=abort_cases,
    advice="Answer ABORTED whenever the id is active, queued requests included.",
)
def abort_active(probe: Probe, case: Case) -> None:
    """Abort of a running request answers ABORTED."""
    run = run_abort(probe, case)
    if run.status == "ABORTED":
        return
    if not run.was_active:
        probe.skip("the request had not begun, or had ended, or nearly, when Abort was answered")
    probe.fail("ABORTED for an active request", run.status, run.answer)


@check(
    "OE-CORE-ABORT-004",
    table=_finished_table,
    advice="Keep the ids of finished requests for the retention that the engine reports, and "
    "answer ALREADY_FINISHED for them.",
)
def abort_finished(probe: Probe, case: Case) -> None:
    """Abort of a finished request answers ALREADY_FINISHED; later NOT_FOUND is fine too."""
    if not probe.declared.generates:
        probe.skip("the engine does not generate")
    request = probe.prepared(case)
    stream = probe.generate(replace(case, request=request))
    if not (stream.ending.ok and stream.undisturbed):
        probe.skip(f"the request did not end by itself: {describe(stream)}")
    ended = time.monotonic()
    retention = _retention(probe.declared)
    wait = AFTER_END if case.params["when"] == "soon" else retention + RETENTION_SLACK
    probe.wait_until(lambda: time.monotonic() - ended >= wait, wait + 1.0)
    call = send_abort(probe, request.request_id)
    remembered = time.monotonic() - ended + RETENTION_SLACK < retention
    found = abort_status(call)
    gone = call.rejected and call.ending.code is grpc.StatusCode.NOT_FOUND
    if found == "ALREADY_FINISHED" or (gone and not remembered):
        return
    expected = "ALREADY_FINISHED" if remembered else "ALREADY_FINISHED or NOT_FOUND"
    probe.fail(f"{expected} for a finished request", found, call)


@check(
    "OE-CORE-ABORT-008",
    table=_twice_table,
    strategy=lambda _: histories(alone=False),
    advice="Look ids up whole, and answer a second Abort ABORTED, ALREADY_FINISHED or NOT_FOUND.",
)
def abort_twice(probe: Probe, case: Case) -> None:
    """A second Abort is harmless, and another request goes on to its end; in drawn histories of
    several requests no Abort touches a request that it does not name.
    """
    if "actions" in case.params:
        run_history(probe, case, alone=False)
        return
    if not probe.declared.generates:
        probe.skip("the engine does not generate")
    request = probe.prepared(case)
    other = _bystander(probe, request.request_id, case.params["bystander"])
    bystander = probe.start_generate(Case(other))
    aborted = probe.start_generate(replace(case, request=request))
    limit = probe.pace.generate_limit(1)
    started = bystander.wait_event(1, timeout=limit) and aborted.wait_event(1, timeout=limit)
    first = send_abort(probe, request.request_id, aborted)
    second = send_abort(probe, request.request_id, aborted)
    if not aborted.wait_end(probe.pace.required(END_SECONDS) + margin(probe)):
        aborted.cancel()
    probe.finish(aborted)
    untouched = probe.finish(bystander)
    if not started or untouched.rejected:
        probe.skip("the engine does not run two requests at once")
    if not first.ending.ok:
        probe.skip(f"the first Abort failed: {describe(first)}")
    if abort_status(second) not in {"ABORTED", "ALREADY_FINISHED"} and not (
        second.rejected and second.ending.code is grpc.StatusCode.NOT_FOUND
    ):
        probe.fail("a second Abort to be harmless", abort_status(second), second)
    _finished_normally(probe, untouched)


def _bystander(probe: Probe, aborted_id: str, kind: str) -> v1.GenerateRequest:
    """A shorter request; its id begins with the aborted one when `kind` is `longer`."""
    request = long_request(probe.declared, BYSTANDER_TOKENS)
    request.request_id = f"{aborted_id}-2" if kind == "longer" else probe.fresh_id()
    return request


def _finished_normally(probe: Probe, stream: Transcript) -> None:
    """The bystander ended by itself: STOP or LENGTH, then OK."""
    for position, response in enumerate(responses_of(stream)):
        if response.HasField("error"):
            probe.fail("the other request to finish", "an EngineError", stream, position)
        if response.finished.reason == v1.FINISH_REASON_CANCELLED:
            probe.fail("the other request to finish", "CANCELLED", stream, position)
    if not stream.ending.ok:
        probe.fail("the other request to finish", describe(stream), stream)


@check(
    "OE-CORE-ABORT-011",
    advice="List the target kinds that Abort really takes, REQUEST_ID and ALL_REQUESTS among them, "
    "and answer UNIMPLEMENTED for a kind that is not listed.",
)
def abort_targets(probe: Probe, _: Case) -> None:
    """abort_targets lists both required kinds; an unlisted KV session is UNIMPLEMENTED."""
    scope = capabilities(probe)
    listed = set(scope.message.core.abort_targets)
    for kind in (v1.ABORT_TARGET_KIND_REQUEST_ID, v1.ABORT_TARGET_KIND_ALL_REQUESTS):
        if kind not in listed:
            name = v1.AbortTargetKind.Name(kind).removeprefix("ABORT_TARGET_KIND_")
            probe.fail(f"{name} in core.abort_targets", "a list without it", scope.call)
    if v1.ABORT_TARGET_KIND_KV_SESSION in listed:
        return
    session = v1.KvSessionRef(session_id=f"{UNSEEN}session")
    call = probe.call("Control/Abort", v1.AbortRequest(kv_session=session))
    probe.expect_rejected(
        call, grpc.StatusCode.UNIMPLEMENTED, because="KV_SESSION is not in core.abort_targets"
    )
