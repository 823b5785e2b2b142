"""Pause and resume as steps from state to state: repeated, conflicting, failing in a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import grpc

from conformance.checks.admin.admin_calls import (
    INFERENCE,
    PAUSE,
    RESET,
    RESUME,
    admin_state,
    each_mode,
    granted,
    listed,
    mode_name,
    pause,
    resumed,
    scheduler_name,
)
from conformance.checks.check import check
from conformance.checks.core.abort_run import margin
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import busy, fault, pause_modes, serving
from conformance.model.case import Case
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Seconds within which Inference serves again after a resume.
SERVING_SECONDS = 1.0
# A pause that waits is in progress, as far as a client can tell, once the state is not RUNNING.
BEGIN_SECONDS = 5.0


@check(
    "OE-ADM-009",
    table=each_mode,
    advice="Compare the mode with the one in force: equal is OK without effect, another one is "
    "FAILED_PRECONDITION until the engine is resumed.",
)
def pause_repeated(probe: Probe, case: Case) -> None:
    """The same pause again is fine, and another mode is refused and changes nothing."""
    mode = case.params["mode"]
    with resumed(probe):
        granted(probe, pause(probe, mode))
        again = pause(probe, mode)
        if not again.ending.ok:
            probe.fail(f"OK for a second pause by {mode_name(mode)}", describe(again), again)
        for other in pause_modes(probe):
            if other == mode:
                continue
            call = pause(probe, other)
            because = f"the engine is paused by {mode_name(mode)}"
            probe.expect_rejected(call, grpc.StatusCode.FAILED_PRECONDITION, because=because)
        now = admin_state(probe)
    if now.message.scheduler != v1.SCHEDULER_STATE_PAUSED or now.message.pause_mode != mode:
        wanted = f"PAUSED by {mode_name(mode)} as before"
        actual = f"{scheduler_name(now.message)} by {mode_name(now.message.pause_mode)}"
        probe.fail(wanted, actual, now.call)


def _resumes(_: Declared) -> Iterable[Case]:
    return [Case(params={"from": state}) for state in ("paused", "running")]


@check(
    "OE-ADM-010",
    table=_resumes,
    advice="Answer ResumeGeneration when requests are admitted and the health service says so; on "
    "a running engine answer OK and touch nothing.",
)
def resume_restores(probe: Probe, case: Case) -> None:
    """A resume brings RUNNING and SERVING; on a running engine it does nothing."""
    if case.params["from"] == "running":
        _resume_running(probe)
        return
    with resumed(probe):
        granted(probe, pause(probe, _gentlest(probe)))
        call = probe.call(RESUME, v1.ResumeGenerationRequest())
        if not call.ending.ok:
            probe.fail("OK from a resume", describe(call), call)
        _running(probe, call)
        limit = probe.pace.required(SERVING_SECONDS) + margin(probe)
        if not probe.wait_until(lambda: serving(probe, INFERENCE) == "SERVING", limit):
            wanted = f"SERVING for Inference within {SERVING_SECONDS:g} s of the resume"
            probe.fail(wanted, serving(probe, INFERENCE), call)


def _gentlest(probe: Probe) -> int:
    return next(iter(pause_modes(probe)), v1.PAUSE_MODE_ABORT)


def _running(probe: Probe, call: Transcript) -> None:
    """Both the answer and a later read say RUNNING, without a pause mode."""
    now = admin_state(probe)
    for state, where in ((granted(probe, call), call), (now.message, now.call)):
        if state.scheduler != v1.SCHEDULER_STATE_RUNNING:
            probe.fail("RUNNING after the resume", scheduler_name(state), where)
        if state.pause_mode != v1.PAUSE_MODE_UNSPECIFIED:
            probe.fail("no pause mode after the resume", mode_name(state.pause_mode), where)


def _resume_running(probe: Probe) -> None:
    if not probe.declared.generates:
        call = probe.call(RESUME, v1.ResumeGenerationRequest())
    else:
        with busy(probe) as live:
            call = probe.call(RESUME, v1.ResumeGenerationRequest())
            went_on = live.done or live.wait_event(len(live.events) + 1)
        if not went_on:
            probe.fail("a running request to go on over a resume", "it stopped", call)
    if not call.ending.ok:
        probe.fail("OK from a resume of a running engine", describe(call), call)
    _running(probe, call)


@check(
    "OE-ADM-021",
    advice="Collect the answer of every worker, and fail the call with the message of one that "
    "failed; take the others back to the state from before.",
)
def worker_failure_told(probe: Probe, _: Case) -> None:
    """When a worker fails, PauseGeneration fails and says why."""
    mode = _gentlest(probe)
    with resumed(probe), fault(probe, v1.FAULT_KIND_WORKER_FAILS):
        call = pause(probe, mode)
        state = admin_state(probe)
    if call.ending.ok:
        probe.fail("a failure of PauseGeneration: a worker failed", describe(call), call)
    if not call.ending.details.strip():
        probe.fail("the worker's message in the status", "an empty message", call)
    if state.message.scheduler == v1.SCHEDULER_STATE_PAUSED:
        probe.fail("no PAUSED after a pause that failed", "PAUSED", state.call)


def _conflicts(declared: Declared) -> Iterable[Case]:
    scope = declared.engine_scope
    modes = () if scope is None else scope.admin.pause_modes
    others = [f"pause {mode}" for mode in dict.fromkeys(modes) if mode != v1.PAUSE_MODE_WAIT]
    return [Case(params={"second": name}) for name in ("reset", *others)]


@check(
    "OE-ADM-025",
    table=_conflicts,
    advice="Take one lock for all admin operations without waiting for it: who finds it taken "
    "answers ABORTED.",
)
def operations_serialised(probe: Probe, case: Case) -> None:
    """During a pause that waits, a conflicting operation is ABORTED; the pause then succeeds."""
    listed(probe, v1.PAUSE_MODE_WAIT)
    kind, _, number = case.params["second"].partition(" ")
    with resumed(probe), busy(probe) as running, _waiting(probe) as first:
        in_progress = not (first.done or running.done)
        if kind == "reset":
            second = probe.call(RESET, v1.ResetCacheRequest())
        else:
            second = pause(probe, int(number))
        conflicted = in_progress and not first.done
        running.cancel()
        first.wait_end(probe.pace.unary_limit())
        call = probe.finish(first)
        state = admin_state(probe)
    if not conflicted:
        probe.skip("the first operation did not last until the second one was answered")
    if second.ending.code is not grpc.StatusCode.ABORTED:
        wanted = f"ABORTED for {second.method} while a pause is in progress"
        probe.fail(wanted, describe(second), second)
    if not call.ending.ok or state.message.scheduler != v1.SCHEDULER_STATE_PAUSED:
        wanted = "the first pause to succeed"
        actual = f"{describe(call)}, then {scheduler_name(state.message)}"
        probe.fail(wanted, actual, call)


@contextmanager
def _waiting(probe: Probe) -> Iterator[LiveCall]:
    """A pause by WAIT that has begun and not ended, as far as GetAdminState shows."""
    live = probe.start(PAUSE, v1.PauseGenerationRequest(mode=v1.PAUSE_MODE_WAIT))

    def begun() -> bool:
        state = admin_state(probe).message.scheduler
        return live.done or state != v1.SCHEDULER_STATE_RUNNING

    if not probe.wait_until(begun, probe.pace.required(BEGIN_SECONDS)):
        probe.skip("a pause by WAIT does not show in GetAdminState while it waits")
    yield live
