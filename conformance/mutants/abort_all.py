"""Mutants of Abort of everything, of what it gives back, and of an abort that is refused."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import grpc

from conformance.mutants.behaviours import forward, when
from conformance.mutants.cancel import detached
from conformance.mutants.methods import ABORT, GENERATE
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from conformance.mutants.reading import until
from oe_wire import v1
from oe_wire.services import METHODS

# For how long a flag that says 'abort all' is still up.
FLAG_SECONDS = 0.5
# Requests that come after everything was aborted are short; those that it is to end are not.
SHORT = 64
ABORTED = v1.AbortResponse(status=v1.ABORT_STATUS_ABORTED)


def _everything(request: Any) -> bool:
    return bool(request.HasField("all_requests"))


def _one(request: Any) -> bool:
    return bool(request.request_id)


async def _always_aborted(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        response.status = v1.ABORT_STATUS_ABORTED
        yield response


async def _noted(exchange: Exchange) -> Answers:
    active = exchange.state.setdefault("active", [])
    active.append(exchange.request.request_id)
    try:
        async for response in exchange.upstream():
            yield response
    finally:
        active.remove(exchange.request.request_id)


async def _only_oldest(exchange: Exchange) -> Answers:
    """The table is changed while it is walked over, and the walk ends."""
    active = exchange.state.get("active", [])
    if active:
        exchange.request = v1.AbortRequest(request_id=active[0])
    async for response in exchange.upstream():
        yield response


async def _flag_up(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        exchange.state["until"] = asyncio.get_running_loop().time() + FLAG_SECONDS
        yield response


async def _flag_seen(exchange: Exchange) -> Answers:
    late = asyncio.get_running_loop().time() < exchange.state.get("until", 0.0)
    hit = late and exchange.request.stopping.max_tokens <= SHORT
    async for response in exchange.upstream():
        yield response
        if hit:
            hit = False
            await exchange.ask(
                METHODS[ABORT], v1.AbortRequest(request_id=exchange.request.request_id)
            )


async def _pretended(exchange: Exchange) -> Answers:
    """Abort closes the stream to the client; the engine hears nothing of it."""
    stops = exchange.state.get("stops", {})
    if exchange.request.request_id in stops:
        stops[exchange.request.request_id].set()
        yield ABORTED
        return
    async for response in exchange.upstream():
        yield response


async def _closed_by_abort(exchange: Exchange) -> Answers:
    request_id, sent = exchange.request.request_id, 0
    stops = exchange.state.setdefault("stops", {})
    if request_id in stops:
        async for response in forward(exchange):
            yield response
        return
    stop = stops[request_id] = asyncio.Event()
    try:
        async with aclosing(until(stop, detached(exchange, stop.is_set))) as answers:
            async for response in answers:
                sent += len(response.token.tokens)
                yield response
        if stop.is_set():
            yield cancelled_end(exchange.request, sent)
    finally:
        stops.pop(request_id, None)


def cancelled_end(request: Any, sent: int) -> v1.GenerateResponse:
    """The end of an aborted output, as a right engine sends it."""
    prompt = len(request.token_ids.ids) or 1
    usage = v1.Usage(prompt_tokens=prompt, completion_tokens=sent, total_tokens=prompt + sent)
    finished = v1.GenerationFinished(output_index=0, reason=v1.FINISH_REASON_CANCELLED)
    return v1.GenerateResponse(request_id=request.request_id, finished=finished, usage=usage)


def _single(request: Any) -> bool:
    return not request.sampling.num_sequences > 1


async def _refusal_hidden(exchange: Exchange) -> Answers:
    try:
        async for response in exchange.upstream():
            yield response
    except Refused as refused:
        if refused.code is not grpc.StatusCode.INTERNAL:
            raise
        yield v1.AbortResponse(status=v1.ABORT_STATUS_ALREADY_FINISHED)


MUTANTS = (
    Mutant(
        "abort-all-ends-one",
        "OE-CORE-ABORT-009",
        "The table of requests is changed while it is walked over, so that one request ends.",
        {ABORT: when(_everything, _only_oldest), GENERATE: _noted},
    ),
    Mutant(
        "abort-all-always-aborted",
        "OE-CORE-ABORT-009",
        "Abort of everything answers ABORTED although nothing was active.",
        {ABORT: when(_everything, _always_aborted)},
    ),
    Mutant(
        "abort-all-hits-later",
        "OE-CORE-ABORT-010",
        "Abort of everything raises a flag that requests still see when they come later.",
        {ABORT: when(_everything, _flag_up), GENERATE: _flag_seen},
    ),
    Mutant(
        "aborted-work-goes-on",
        "OE-CORE-ABORT-012",
        "Abort ends the stream, and the engine works on without a reader.",
        {ABORT: when(_one, _pretended), GENERATE: when(_single, _closed_by_abort)},
        # The engine still counts the request, and knows its id.
        frozenset({"OE-LOAD-009", "OE-CORE-GEN-004", "OE-ADM-012"}),
    ),
    Mutant(
        "refused-abort-hidden",
        "OE-CORE-ABORT-013",
        "An abort that failed in the engine is reported as one that came too late.",
        {ABORT: _refusal_hidden},
    ),
)
