"""Mutants of engines that are full, of calls that are cut, and of refusals that leave traces."""

from __future__ import annotations

import time
from typing import Any

import grpc

from conformance.mutants.behaviours import edited, recoded, refusal
from conformance.mutants.methods import BOTH_LOADS, GENERATE, each
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from oe_wire import v1

# Calls with deadlines as short as this are cut by them on purpose.
SHORT_DEADLINE = 1.0
# A message that has not left after this many seconds has a reader that does not read.
BLOCKED_SECONDS = 0.3
LARGE_BYTES = 1 << 20
TAKEN = refusal(grpc.StatusCode.ALREADY_EXISTS, "DUPLICATE_REQUEST", "the request is active")


async def _refused_id_kept(exchange: Exchange) -> Answers:
    """The id is entered before the request is validated, and left there when it fails."""
    kept = exchange.state.setdefault("kept", set())
    request_id = exchange.request.request_id
    if request_id in kept:
        raise TAKEN
    try:
        async for response in exchange.upstream():
            yield response
    except Refused as refused_call:
        if refused_call.code is grpc.StatusCode.INVALID_ARGUMENT and request_id:
            kept.add(request_id)
        raise


async def _counting_refusals(exchange: Exchange) -> Answers:
    try:
        async for response in exchange.upstream():
            yield response
        exchange.state["counted"] = 0
    except Refused as refused_call:
        if refused_call.code is grpc.StatusCode.INVALID_ARGUMENT:
            exchange.state["counted"] = exchange.state.get("counted", 0) + 1
        raise


async def _with_refusals(exchange: Exchange) -> Answers:
    async for load in exchange.upstream():
        load.running_requests += exchange.state.get("counted", 0)
        yield load


def _unavailable(refused_call: Refused, request: Any) -> Refused:
    full = refused_call.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    if not full or request.ByteSize() > LARGE_BYTES:
        return refused_call
    return Refused(grpc.StatusCode.UNAVAILABLE, refused_call.details, refused_call.trailers)


async def _deadline_unseen(exchange: Exchange) -> Answers:
    """Cancellation is noticed, a deadline is not: the request goes on under its id."""
    stuck = exchange.state.setdefault("stuck", set())
    request_id = exchange.request.request_id
    if request_id in stuck:
        raise TAKEN
    ended = False
    try:
        async for response in exchange.upstream():
            yield response
        ended = True
    except Refused:
        ended = True
        raise
    finally:
        if not ended and exchange.deadline is not None and exchange.deadline < SHORT_DEADLINE:
            stuck.add(request_id)


async def _impatient(exchange: Exchange) -> Answers:
    """One message that is slow to leave ends the stream."""
    async for response in exchange.upstream():
        start = time.monotonic()
        yield response
        if time.monotonic() - start > BLOCKED_SECONDS and not response.HasField("usage"):
            error = v1.EngineError(
                code=v1.ERROR_CODE_OVERLOADED, message="the reader is slow", retryable=True
            )
            failed = v1.GenerateResponse(request_id=response.request_id, error=error)
            # What it used until then is not known here, but that it used some.
            failed.usage.completion_tokens = failed.usage.total_tokens = 1
            yield failed
            return


def _not_retryable(response: Any) -> None:
    if response.error.code == v1.ERROR_CODE_OVERLOADED:
        response.error.retryable = False


def _size_as_argument(refused_call: Refused, request: Any) -> Refused:
    if request.ByteSize() <= LARGE_BYTES:
        return refused_call
    return refusal(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT", "the message is large")


MUTANTS = (
    Mutant(
        "refused-id-kept",
        "OE-CORE-GEN-034",
        "The id of a request is registered before validation and stays when that fails.",
        {GENERATE: _refused_id_kept},
    ),
    Mutant(
        "refusals-counted",
        "OE-CORE-GEN-034",
        "The number of running requests goes up before validation, and is only put right by the "
        "next request that ends.",
        {GENERATE: _counting_refusals, **each(BOTH_LOADS, _with_refusals)},
    ),
    Mutant(
        "overload-as-unavailable",
        "OE-CORE-GEN-035",
        "A full engine looks like one that is gone.",
        {GENERATE: recoded(_unavailable)},
    ),
    Mutant(
        "deadline-unseen",
        "OE-CORE-GEN-036",
        "The handler listens for cancellation only, and a call whose deadline passed goes on.",
        {GENERATE: _deadline_unseen},
        # A client that gives up by its deadline has cancelled.
        frozenset({"OE-CORE-CANCEL-001"}),
    ),
    Mutant(
        "impatient-with-readers",
        "OE-CORE-STREAM-028",
        "The first write that blocks ends the stream, long before the advertised time.",
        {GENERATE: _impatient},
    ),
    Mutant(
        "stall-not-retryable",
        "OE-CORE-STREAM-028",
        "A stalled reader is told that a retry is no use.",
        {GENERATE: edited(_not_retryable)},
    ),
    Mutant(
        "size-as-argument",
        "OE-CORE-ERR-008",
        "A middleware reads the whole message and then refuses it as invalid.",
        {GENERATE: recoded(_size_as_argument)},
    ),
)
