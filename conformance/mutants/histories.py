"""Mutants that only a history of several actions shows: none of them alone does any harm."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import aclosing
from typing import Any

import grpc

from conformance.mutants.abort_all import ABORTED, SHORT, cancelled_end
from conformance.mutants.behaviours import forward, refusal, when
from conformance.mutants.cancel import detached
from conformance.mutants.methods import ABORT, GENERATE
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from conformance.mutants.reading import until
from oe_wire import v1
from oe_wire.services import METHODS

# Requests in flight at which the place of the oldest is looked up wrongly.
CROWD = 2
# The load of a history is looked at near its end, so the work has to go on for longer.
CROWD_SECONDS = 9.0


def _one(request: Any) -> bool:
    return bool(request.request_id)


def _single(request: Any) -> bool:
    return not request.sampling.num_sequences > 1


async def _remembered(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        if response.status == v1.ABORT_STATUS_ABORTED:
            exchange.state.setdefault("aborted", set()).add(exchange.request.request_id)
        yield response


async def _aborted_before(exchange: Exchange) -> Answers:
    """The set of aborted ids is looked at after every token, and nobody takes an id out of it."""
    request_id = exchange.request.request_id
    stale = request_id in exchange.state.get("aborted", ())
    async for response in exchange.upstream():
        yield response
        if stale:
            stale = False
            await exchange.ask(METHODS[ABORT], v1.AbortRequest(request_id=request_id))


async def _unregistered(exchange: Exchange) -> Answers:
    """The refusal of a duplicate leaves through the clean-up of requests, by id."""
    lost = exchange.state.setdefault("lost", set())
    request_id = exchange.request.request_id
    try:
        async for response in exchange.upstream():
            yield response
    except Refused as refused:
        if refused.code is grpc.StatusCode.ALREADY_EXISTS:
            lost.add(request_id)
        raise
    else:
        lost.discard(request_id)


async def _unknown_when_lost(exchange: Exchange) -> Answers:
    if exchange.request.request_id in exchange.state.get("lost", ()):
        details = "request_id is not known"
        raise refusal(grpc.StatusCode.NOT_FOUND, "REQUEST_NOT_FOUND", details)
    async for response in exchange.upstream():
        yield response


async def _pretended_in_crowd(exchange: Exchange) -> Answers:
    """A request that came when others were running is looked up in the wrong place."""
    inner, stop = exchange.state.get("inner", {}).get(exchange.request.request_id, (None, None))
    if stop is not None and exchange.state["streams"][0] >= CROWD:
        stop.set()
        yield ABORTED
        return
    if inner is not None:
        exchange.request.request_id = inner
    async for response in exchange.upstream():
        yield response


async def _closed_in_crowd(exchange: Exchange) -> Answers:
    """The first of several long requests is the engine's as it is; the others get other ids."""
    request_id = exchange.request.request_id
    streams = exchange.state.setdefault("streams", [0])
    if request_id in exchange.state.get("inner", ()):
        details = "request_id is already in use"
        raise refusal(grpc.StatusCode.ALREADY_EXISTS, "DUPLICATE_REQUEST", details)
    outer = exchange.state.setdefault("outer", {})
    long = exchange.request.stopping.max_tokens > SHORT
    inner = long and streams[0] > 0 and not outer.get(request_id)
    streams[0] += long
    outer[request_id] = outer.get(request_id, 0) + (not inner)
    try:
        async with aclosing((_under_inner_id if inner else forward)(exchange)) as answers:
            async for response in answers:
                yield response
    finally:
        streams[0] -= long
        outer[request_id] -= not inner


async def _under_inner_id(exchange: Exchange) -> Answers:
    """The engine knows the request by another id, so that the caller's is free at once."""
    request_id, sent = exchange.request.request_id, 0
    known = exchange.state.setdefault("inner", {})
    stop = asyncio.Event()
    exchange.request.request_id = f"inner-{secrets.token_hex(8)}"
    known[request_id] = exchange.request.request_id, stop
    inner = detached(exchange, stop.is_set, CROWD_SECONDS)
    try:
        async with aclosing(until(stop, inner)) as answers:
            async for response in answers:
                response.request_id = request_id
                sent += len(response.token.tokens)
                yield response
        if stop.is_set():
            yield cancelled_end(_named(exchange.request, request_id), sent)
    finally:
        known.pop(request_id, None)


def _named(request: Any, request_id: str) -> v1.GenerateRequest:
    """A copy of the request under another id."""
    copy = v1.GenerateRequest()
    copy.CopyFrom(request)
    copy.request_id = request_id
    return copy


MUTANTS = (
    Mutant(
        "abort-sticks-to-id",
        "OE-CORE-ABORT-008",
        "Aborted ids are kept in a set, and a later request under such an id is aborted too.",
        {ABORT: _remembered, GENERATE: _aborted_before},
    ),
    Mutant(
        "duplicate-unregisters-first",
        "OE-CORE-GEN-003",
        "A refused duplicate is cleaned up by id, so that the first request cannot be aborted.",
        {GENERATE: _unregistered, ABORT: when(_one, _unknown_when_lost)},
    ),
    Mutant(
        "abort-in-crowd-goes-on",
        "OE-CORE-ABORT-012",
        "With several requests in flight Abort ends the stream, and the work goes on.",
        {ABORT: when(_one, _pretended_in_crowd), GENERATE: when(_single, _closed_in_crowd)},
    ),
)
