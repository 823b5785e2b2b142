"""Mutants of failures: doubled, unnamed, blamed on the engine, retryable in vain, indiscreet."""

from __future__ import annotations

from typing import Any

import grpc

from conformance.mutants.behaviours import edited, recoded, refusal, refused, when
from conformance.mutants.methods import EVERY_RPC, GENERATE, each
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from oe_wire import v1

RETRYABLE = "openengine-error-retryable"
CODE = "openengine-error-code"


def _cold(request: Any) -> bool:
    """Below the least temperature."""
    return bool(request.sampling.temperature < 0)


async def _event_and_status(exchange: Exchange) -> Answers:
    """What validation raises is sent as an event on its way to the status."""
    try:
        async for response in exchange.upstream():
            yield response
    except Refused as refused_call:
        if refused_call.code is grpc.StatusCode.INVALID_ARGUMENT:
            code = v1.ERROR_CODE_INVALID_ARGUMENT
            error = v1.EngineError(code=code, message=refused_call.details)
            yield v1.GenerateResponse(request_id=exchange.request.request_id, error=error)
        raise


def _mute(response: Any) -> None:
    if response.HasField("error"):
        response.error.message = ""


def _bare(refused_call: Refused, _: Any) -> Refused:
    return Refused(refused_call.code, refused_call.details)


def _retry(refused_call: Refused, _: Any) -> Refused:
    trailers = [item for item in refused_call.trailers if item[0] != RETRYABLE]
    return Refused(refused_call.code, refused_call.details, (*trailers, (RETRYABLE, "true")))


def _one_code_for_all(refused_call: Refused, _: Any) -> Refused:
    trailers = [
        (key, "ERROR_CODE_INTERNAL" if key == CODE else value)
        for key, value in refused_call.trailers
    ]
    return Refused(refused_call.code, refused_call.details, tuple(trailers))


def _media_without_source(request: Any) -> bool:
    return any(item.WhichOneof("source") is None for item in request.media)


def _quote_prompt(refused_call: Refused, request: Any) -> Refused:
    details = f"{refused_call.details}, in the request with the prompt {request.prompt!r}"
    return Refused(refused_call.code, details, refused_call.trailers)


async def _quote_metadata(exchange: Exchange) -> Answers:
    try:
        async for response in exchange.upstream():
            yield response
    except Refused as refusal_:
        sent = ", ".join(f"{key}={value!r}" for key, value in exchange.metadata)
        details = f"{refusal_.details} ({sent})"
        raise Refused(refusal_.code, details, refusal_.trailers) from refusal_


MUTANTS = (
    Mutant(
        "error-event-and-status",
        "OE-CORE-ERR-001",
        "What the sampler refuses is sent as an event, and then its exception ends the call.",
        {GENERATE: when(_cold, _event_and_status)},
        # Both say that the call ends OK after an EngineError.
        frozenset({"OE-CORE-STREAM-011", "OE-CORE-STREAM-012"}),
    ),
    Mutant(
        "error-without-words",
        "OE-CORE-ERR-002",
        "The exception that ended the request had no text.",
        {GENERATE: edited(_mute)},
    ),
    Mutant(
        "rejection-without-code",
        "OE-CORE-ERR-004",
        "Rejections are plain gRPC errors, without the trailers that machines read.",
        each(EVERY_RPC, recoded(_bare)),
    ),
    Mutant(
        "one-code-for-all",
        "OE-CORE-ERR-004",
        "Every rejection carries the code INTERNAL, whatever its status says.",
        each(EVERY_RPC, recoded(_one_code_for_all)),
    ),
    Mutant(
        "everything-retryable",
        "OE-CORE-ERR-005",
        "Rejections tell the client to try the same request again.",
        {GENERATE: recoded(_retry)},
    ),
    Mutant(
        "input-crashes-handler",
        "OE-CORE-ERR-006",
        "A media item without a source raises in the handler, and the status is INTERNAL.",
        {
            GENERATE: when(
                _media_without_source,
                refused(refusal(grpc.StatusCode.INTERNAL, "INTERNAL", "NoneType has no attribute")),
            )
        },
        # The same request has a status of its own there.
        frozenset({"OE-CORE-GEN-027"}),
    ),
    Mutant(
        "prompt-in-message",
        "OE-CORE-ERR-007",
        "Rejections quote the whole request, the prompt included.",
        {GENERATE: recoded(_quote_prompt)},
    ),
    Mutant(
        "metadata-in-message",
        "OE-CORE-ERR-007",
        "Rejections quote the call's metadata, which may hold credentials.",
        {GENERATE: _quote_metadata},
    ),
)
