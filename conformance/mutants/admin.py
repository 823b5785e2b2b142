"""Mutants of pausing and resuming: states, modes, operations at once, failing workers."""

from __future__ import annotations

from typing import Any

import grpc

from conformance.mutants.behaviours import (
    answered,
    edited,
    recoded,
    refusal,
    refused,
    repaired,
)
from conformance.mutants.methods import (
    ADMIN_STATE,
    CAPABILITIES,
    CHECK,
    GENERATE,
    MODEL_INFO,
    PAUSE,
    RESET_CACHE,
    RESUME,
    each,
)
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from conformance.mutants.pausing import while_paused
from oe_wire import health, v1
from oe_wire.services import METHODS

START_PROFILE = "openengine.v1.OpenEngineAdmin/StartProfile"
SERVING = health.HealthCheckResponse.SERVING
NOT_SERVING = health.HealthCheckResponse.NOT_SERVING
UNREADY = refused(refusal(grpc.StatusCode.UNAVAILABLE, "OVERLOADED", "the engine is paused"))


def _without_reset(scope: Any) -> None:
    operations = [each for each in scope.admin.operations if each != v1.ADMIN_OPERATION_RESET_CACHE]
    scope.admin.operations[:] = operations


def _revision_kept(state: Any) -> None:
    state.admin_revision = 1


async def _revision_of_calls(exchange: Exchange) -> Answers:
    exchange.state["calls"] = exchange.state.get("calls", 0) + 1
    async for state in exchange.upstream():
        state.admin_revision += exchange.state["calls"]
        yield state


def _on_the_way(state: Any) -> None:
    state.scheduler = v1.SCHEDULER_STATE_PAUSING


def _always_serving(response: Any) -> None:
    if response.status == NOT_SERVING:
        response.status = SERVING


async def _dooms(exchange: Exchange) -> Answers:
    """The requests that run when a pause by ABORT begins are those that it ends."""
    if exchange.request.mode in (v1.PAUSE_MODE_UNSPECIFIED, v1.PAUSE_MODE_ABORT):
        exchange.state.setdefault("doomed", set()).update(exchange.state.get("active", ()))
    async for state in exchange.upstream():
        yield state


async def _fails_when_doomed(exchange: Exchange) -> Answers:
    own = exchange.request.request_id
    active = exchange.state.setdefault("active", set())
    active.add(own)
    try:
        async for response in exchange.upstream():
            yield response
    finally:
        active.discard(own)
    if own in exchange.state.get("doomed", ()):
        raise Refused(grpc.StatusCode.UNAVAILABLE, "the engine is paused")


def _waits_for_nobody(request: Any) -> None:
    if request.mode == v1.PAUSE_MODE_WAIT and not request.HasField("timeout_ms"):
        request.mode = v1.PAUSE_MODE_ABORT


async def _stays_paused(exchange: Exchange) -> Answers:
    """A wait that has run out leaves admission closed."""
    try:
        async for state in exchange.upstream():
            yield state
    except Refused as gone:
        if gone.code is grpc.StatusCode.DEADLINE_EXCEEDED:
            method = METHODS[PAUSE]
            await exchange.ask(method, v1.PauseGenerationRequest(mode=v1.PAUSE_MODE_KEEP))
        raise


def _zero_as_absent(request: Any) -> None:
    if request.mode == v1.PAUSE_MODE_WAIT and not request.timeout_ms:
        request.ClearField("timeout_ms")


def _limit_of_keep_ignored(request: Any) -> None:
    if request.mode == v1.PAUSE_MODE_KEEP:
        request.ClearField("timeout_ms")


def _unspecified_keeps(request: Any) -> None:
    if request.mode == v1.PAUSE_MODE_UNSPECIFIED and not request.HasField("timeout_ms"):
        request.mode = v1.PAUSE_MODE_KEEP


def _without_wait(scope: Any) -> None:
    scope.admin.pause_modes[:] = [
        mode for mode in scope.admin.pause_modes if mode != v1.PAUSE_MODE_WAIT
    ]


async def _second_pause_refused(exchange: Exchange) -> Answers:
    mode = exchange.request.mode
    current = await exchange.ask(METHODS[ADMIN_STATE], v1.GetAdminStateRequest())
    if current.scheduler == v1.SCHEDULER_STATE_PAUSED and current.pause_mode == mode:
        code = grpc.StatusCode.FAILED_PRECONDITION
        raise refusal(code, "ROLE_MISMATCH", "the engine is paused already")
    async for state in exchange.upstream():
        yield state


async def _other_mode_taken(exchange: Exchange) -> Answers:
    """The engine is resumed for a moment, and paused again in the other mode."""
    try:
        async for state in exchange.upstream():
            yield state
    except Refused as conflict:
        if conflict.code is not grpc.StatusCode.FAILED_PRECONDITION:
            raise
    else:
        return
    await exchange.ask(METHODS[RESUME], v1.ResumeGenerationRequest())
    yield await exchange.ask(exchange.method, exchange.request)


async def _nothing_to_resume(exchange: Exchange) -> Answers:
    current = await exchange.ask(METHODS[ADMIN_STATE], v1.GetAdminStateRequest())
    if current.scheduler == v1.SCHEDULER_STATE_RUNNING:
        code = grpc.StatusCode.FAILED_PRECONDITION
        raise refusal(code, "ROLE_MISMATCH", "the engine is not paused")
    async for state in exchange.upstream():
        yield state


def _still_paused(state: Any) -> None:
    state.scheduler = v1.SCHEDULER_STATE_PAUSED


async def _partial_success(exchange: Exchange) -> Answers:
    """The answers of the workers that did not fail are taken for the answer of all."""
    try:
        async for state in exchange.upstream():
            yield state
    except Refused as failure:
        if failure.code is not grpc.StatusCode.INTERNAL:
            raise
    else:
        return
    state = await exchange.ask(METHODS[ADMIN_STATE], v1.GetAdminStateRequest())
    state.scheduler, state.pause_mode = v1.SCHEDULER_STATE_PAUSED, exchange.request.mode
    yield state


def _without_words(failure: Refused, _: Any) -> Refused:
    if failure.code is grpc.StatusCode.INTERNAL:
        return Refused(failure.code, " ", failure.trailers)
    return failure


def _busy_for_busy(failure: Refused, _: Any) -> Refused:
    if failure.code is grpc.StatusCode.ABORTED:
        return refusal(grpc.StatusCode.UNAVAILABLE, "OVERLOADED", "another operation runs")
    return failure


MUTANTS = (
    Mutant(
        "reset-not-listed",
        "OE-ADM-001",
        "ResetCache works and is not listed.",
        {CAPABILITIES: edited(_without_reset)},
    ),
    Mutant(
        "unlisted-operation-served",
        "OE-ADM-001",
        "Profiling is not listed, and its RPCs answer.",
        {START_PROFILE: answered(lambda _: v1.StartProfileResponse())},
    ),
    Mutant(
        "admin-revision-kept",
        "OE-ADM-002",
        "The revision is that of the launch, whatever happens.",
        each((ADMIN_STATE, PAUSE, RESUME), edited(_revision_kept)),
    ),
    Mutant(
        "admin-revision-counts-reads",
        "OE-ADM-002",
        "Every look at the state is a revision of it.",
        {ADMIN_STATE: _revision_of_calls},
    ),
    Mutant(
        "pause-answers-on-the-way",
        "OE-ADM-003",
        "The answer comes when the scheduler has been told, not when it has stopped.",
        {PAUSE: edited(_on_the_way)},
    ),
    Mutant(
        "paused-but-serving",
        "OE-ADM-003",
        "The health service is not told of a pause.",
        {CHECK: edited(_always_serving)},
        # Whatever compares a paused engine's health notices it.
        frozenset(
            {
                "OE-CORE-HEALTH-006",
                "OE-CORE-HEALTH-009",
                "OE-CORE-HEALTH-010",
                "OE-CORE-HEALTH-011",
                "OE-CORE-HEALTH-012",
                "OE-CORE-HEALTH-020",
            }
        ),
    ),
    Mutant(
        "paused-streams-fail",
        "OE-ADM-004",
        "Streams that a pause ends close with UNAVAILABLE.",
        {PAUSE: _dooms, GENERATE: _fails_when_doomed},
        # A stream ends with OK after its last terminal event.
        frozenset({"OE-CORE-STREAM-012"}),
    ),
    Mutant(
        "wait-aborts",
        "OE-ADM-005",
        "Waiting is not implemented, and the requests that run are aborted.",
        {PAUSE: repaired(_waits_for_nobody)},
        # The mode in force is another than was asked for, and nothing is ever in progress.
        frozenset({"OE-ADM-009", "OE-ADM-025"}),
    ),
    Mutant(
        "wait-runs-out-paused",
        "OE-ADM-005",
        "When the time for waiting is over, the engine stays paused.",
        {PAUSE: _stays_paused},
    ),
    Mutant(
        "zero-wait-for-ever",
        "OE-ADM-005",
        "A timeout of zero is taken for an absent one.",
        {PAUSE: repaired(_zero_as_absent)},
    ),
    Mutant(
        "timeout-of-keep-ignored",
        "OE-ADM-005",
        "A timeout of a mode that does not wait is dropped.",
        {PAUSE: repaired(_limit_of_keep_ignored)},
    ),
    Mutant(
        "unspecified-keeps",
        "OE-ADM-007",
        "The default mode is the gentlest one.",
        {PAUSE: repaired(_unspecified_keeps)},
    ),
    Mutant(
        "unlisted-mode-taken",
        "OE-ADM-007",
        "A mode that the configuration withdraws is still taken.",
        {CAPABILITIES: edited(_without_wait)},
    ),
    Mutant(
        "second-pause-refused",
        "OE-ADM-009",
        "A pause of a paused engine is an error.",
        {PAUSE: _second_pause_refused},
    ),
    Mutant(
        "other-mode-taken",
        "OE-ADM-009",
        "A pause in another mode replaces the one in force.",
        {PAUSE: _other_mode_taken},
    ),
    Mutant(
        "nothing-to-resume",
        "OE-ADM-010",
        "A resume of a running engine is an error.",
        {RESUME: _nothing_to_resume},
    ),
    Mutant(
        "resume-answers-from-before",
        "OE-ADM-010",
        "The answer to a resume shows the state from before it.",
        {RESUME: edited(_still_paused)},
    ),
    Mutant(
        "models-hidden-while-paused",
        "OE-ADM-011",
        "Model facts are refused like requests while the engine is paused.",
        while_paused({MODEL_INFO: UNREADY}),
        frozenset({"OE-CORE-HEALTH-009"}),
    ),
    Mutant(
        "worker-failure-hidden",
        "OE-ADM-021",
        "One worker's failure is written to the log, and the others' success is the answer.",
        {PAUSE: _partial_success},
    ),
    Mutant(
        "worker-message-lost",
        "OE-ADM-021",
        "The failure of a worker arrives without its words.",
        {PAUSE: recoded(_without_words)},
    ),
    Mutant(
        "second-operation-unavailable",
        "OE-ADM-025",
        "A second operation is told that the engine is unavailable.",
        each((PAUSE, RESUME, RESET_CACHE), recoded(_busy_for_busy)),
    ),
)
