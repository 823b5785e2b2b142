"""Mutants of request ids: minted, too long, used twice at once, never free again."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import grpc

from conformance.mutants.behaviours import forward, refusal, repaired, when
from conformance.mutants.methods import ABORT, GENERATE
from conformance.mutants.mutant import Answers, Behaviour, Exchange, Mutant, Refused
from oe_wire import v1
from oe_wire.services import METHODS


def _duplicate() -> Refused:
    details = "request_id is already in use"
    return refusal(grpc.StatusCode.ALREADY_EXISTS, "DUPLICATE_REQUEST", details)


def renamed(make_id: Callable[[str], str]) -> Behaviour:
    """The engine knows the request by another id; the caller sees the id that was sent."""

    async def behaviour(exchange: Exchange) -> Answers:
        sent = exchange.request.request_id
        exchange.request.request_id = make_id(sent)
        async for response in exchange.upstream():
            response.request_id = sent
            yield response

    return behaviour


def _mint_id(request: Any) -> None:
    if not request.request_id:
        request.request_id = f"minted-{secrets.token_hex(8)}"


def _cut_id(sent: str) -> str:
    return sent.encode()[:200].decode(errors="ignore")


def _long_id(request: Any) -> bool:
    return len(request.request_id.encode()) > 200


def _short_in_characters(request: Any) -> bool:
    """Ids that only a count of characters takes for short: 256 bytes are the usual limit."""
    return len(request.request_id) <= 256 < len(request.request_id.encode())


async def _duplicate_served(exchange: Exchange) -> Answers:
    active = exchange.state.setdefault("active", set())
    sent = exchange.request.request_id
    serve = forward if sent not in active else renamed(lambda sent: f"{sent}-again")
    active.add(sent)
    try:
        async for response in serve(exchange):
            yield response
    finally:
        active.discard(sent)


async def _duplicate_ends_first(exchange: Exchange) -> Answers:
    """The refusal cleans up by id, and thereby the request that rightly has it."""
    active = exchange.state.setdefault("active", set())
    sent = exchange.request.request_id
    if sent in active:
        await exchange.ask(METHODS[ABORT], v1.AbortRequest(request_id=sent))
        raise _duplicate()
    active.add(sent)
    try:
        async for response in exchange.upstream():
            yield response
    finally:
        active.discard(sent)


async def _id_locked(exchange: Exchange) -> Answers:
    used = exchange.state.setdefault("used", set())
    sent = exchange.request.request_id
    if sent in used:
        raise _duplicate()
    async for response in exchange.upstream():
        yield response
    used.add(sent)


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "id-minted",
        "OE-CORE-GEN-001",
        "A request without an id gets one from the server, which the caller cannot know.",
        {GENERATE: repaired(_mint_id)},
    ),
    Mutant(
        "id-length-unchecked",
        "OE-CORE-GEN-002",
        "Ids of any length are taken.",
        {GENERATE: when(_long_id, renamed(_cut_id))},
    ),
    Mutant(
        "id-length-in-characters",
        "OE-CORE-GEN-002",
        "The length of ids is counted in characters instead of bytes.",
        {GENERATE: when(_short_in_characters, renamed(_cut_id))},
    ),
    Mutant(
        "duplicate-served",
        "OE-CORE-GEN-003",
        "A second request under an active id is served beside the first.",
        {GENERATE: _duplicate_served},
    ),
    Mutant(
        "duplicate-ends-first",
        "OE-CORE-GEN-003",
        "The duplicate is refused, and cleaning up after it ends the first request.",
        {GENERATE: _duplicate_ends_first},
    ),
    Mutant(
        "id-locked",
        "OE-CORE-GEN-004",
        "The id of a finished request stays in the table of active ones.",
        {GENERATE: _id_locked},
    ),
)
