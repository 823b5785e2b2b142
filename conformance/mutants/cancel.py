"""Mutants of cancellation: work that goes on, ids that stay taken, streams that end with others."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any

import grpc

from conformance.mutants.behaviours import refusal
from conformance.mutants.methods import ABORT, GENERATE, WATCH
from conformance.mutants.mutant import Answers, Behaviour, Envelope, Exchange, Mutant, Refused
from conformance.mutants.reading import until
from oe_wire import health, v1
from oe_wire.services import METHODS

# For how long work goes on that nobody reads: longer than the 5 s in which it must have ended.
STAY_SECONDS = 6.0
# A fast engine is done with such a request in less. It is then given the same work again, in two
# rows whose requests end at different times, for these shares of its tokens.
LONG = 1000
SHARES = (1.0, 0.625)
INFERENCE = "openengine.v1.Inference"
# More streams than this end together only when a connection is lost.
SEVERAL = 4
MIDDLING = range(32, 65)


async def detached(
    exchange: Exchange, stays: Callable[[], bool], seconds: float = STAY_SECONDS
) -> AsyncGenerator[Any, None]:
    """The engine's answers, read by a task of its own that does not notice a client who goes.

    stays: asked when that happens; True leaves the work for so many seconds, else it ends at once.
    """
    answers: asyncio.Queue[Any] = asyncio.Queue(1)
    left = asyncio.Event()
    task = exchange.beside(_read(exchange, answers, left))
    try:
        while (message := await answers.get()) is not None:
            if isinstance(message, Exception):
                raise message
            yield message
    finally:
        if stays():
            left.set()
            # The task may be waiting for room.
            with suppress(asyncio.QueueEmpty):
                answers.get_nowait()
            for work in (task, *_more_work(exchange)):
                asyncio.get_running_loop().call_later(seconds, work.cancel)
        else:
            task.cancel()


def _more_work(exchange: Exchange) -> list[asyncio.Task[None]]:
    """Keeps the engine at work on a long request until it is cancelled."""
    if exchange.request.stopping.max_tokens < LONG:
        return []
    return [exchange.beside(_over_and_over(exchange, share)) for share in SHARES]


async def _over_and_over(exchange: Exchange, share: float) -> None:
    """Ask for a share of the request's tokens again and again, until the engine refuses."""
    request = v1.GenerateRequest()
    request.CopyFrom(exchange.request)
    request.stopping.max_tokens = int(share * request.stopping.max_tokens)
    with suppress(Refused):
        while True:
            request.request_id = f"again-{secrets.token_hex(8)}"
            data = request.SerializeToString()
            relayed = exchange.relay(exchange.method, data, exchange.metadata, Envelope())
            async with aclosing(relayed):
                async for _ in relayed:
                    continue


async def _read(exchange: Exchange, answers: asyncio.Queue[Any], left: asyncio.Event) -> None:
    """Put every answer into the queue, then None or the error that ended the call; once the
    client has left, drop them.
    """
    request = exchange.request.SerializeToString()
    relayed = exchange.relay(exchange.method, request, exchange.metadata, Envelope())
    end: Refused | None = None
    try:
        async with aclosing(relayed):
            async for data in relayed:
                if not left.is_set():
                    await answers.put(exchange.method.response.FromString(data))
    except Refused as refused:
        end = refused
    if not left.is_set():
        await answers.put(end)


def going_on(condition: Callable[[Exchange, int], bool]) -> Behaviour:
    """The engine works on when the client goes away under the condition, which takes the number
    of messages that were sent.
    """

    async def behaviour(exchange: Exchange) -> Answers:
        streams = exchange.state.setdefault("streams", {})
        sent = 0
        streams[id(exchange)] = exchange.request.request_id
        answers = detached(exchange, lambda: condition(exchange, sent))
        try:
            async with aclosing(answers):
                async for message in answers:
                    yield message
                    sent += 1
        finally:
            streams.pop(id(exchange), None)

    return behaviour


def _abort_beside(exchange: Exchange, request_id: str) -> None:
    """Abort another request, without waiting; it may have ended by itself."""

    async def abort() -> None:
        with suppress(Refused):
            await exchange.ask(METHODS[ABORT], v1.AbortRequest(request_id=request_id))

    exchange.beside(abort())


def _after_messages(exchange: Exchange, sent: int) -> bool:
    return sent > 0 and len(exchange.state["streams"]) < SEVERAL


def _before_messages(_: Exchange, sent: int) -> bool:
    return sent == 0


def _among_several(exchange: Exchange, _: int) -> bool:
    return len(exchange.state["streams"]) >= SEVERAL


async def _id_kept(exchange: Exchange) -> Answers:
    """The table of ids is cleaned by the end of a stream, and a cancelled one has none."""
    used = exchange.state.setdefault("used", set())
    request_id, sent = exchange.request.request_id, 0
    if request_id in used:
        details = "request_id is already in use"
        raise refusal(grpc.StatusCode.ALREADY_EXISTS, "DUPLICATE_REQUEST", details)
    ended = False
    try:
        async for message in exchange.upstream():
            yield message
            sent += 1
        ended = True
    finally:
        if sent and not ended:
            used.add(request_id)


async def _wrong_row_freed(exchange: Exchange) -> Answers:
    """A cancelled stream takes a place of the batch with it that belongs to another: one of a
    middling length, so that this mutant leaves alone what other checks run at the same time.
    """
    streams, ended = exchange.state.setdefault("streams", {}), False
    if exchange.request.stopping.max_tokens in MIDDLING:
        streams[id(exchange)] = exchange.request.request_id
    try:
        async for message in exchange.upstream():
            yield message
        ended = True
    finally:
        streams.pop(id(exchange), None)
        if not ended and streams:
            other = next(reversed(streams.values()))
            _abort_beside(exchange, other)


async def _other_tokens(exchange: Exchange) -> Answers:
    """When a stream is cancelled, the rows of the others move up, and one token is taken twice;
    again only in outputs of a middling length.
    """
    generation = exchange.state.setdefault("cancelled", [0])
    seen, ended = generation[0], False
    repeated = exchange.request.stopping.max_tokens not in MIDDLING
    try:
        async for message in exchange.upstream():
            if message.HasField("token") and generation[0] > seen and not repeated:
                repeated = True
                for record in message.token.tokens:
                    record.token_id += 1
            yield message
        ended = True
    finally:
        if not ended:
            generation[0] += 1


async def _watchers_together(exchange: Exchange) -> Answers:
    """Watchers of one name share a queue, which the first one that leaves closes."""
    watchers = exchange.state.setdefault("watchers", {}).setdefault(exchange.request.service, [])
    gone = asyncio.Event()
    watchers.append(gone)
    try:
        async with aclosing(until(gone, exchange.upstream())) as answers:
            async for message in answers:
                yield message
    finally:
        watchers.remove(gone)
        for other in watchers:
            other.set()


async def _watch_ends_generation(exchange: Exchange) -> Answers:
    """The handler of cancellations is one for all RPCs, and ends the request that came last."""
    try:
        async for message in exchange.upstream():
            yield message
    finally:
        requests = exchange.state.get("streams", {})
        if requests and exchange.request == health.HealthCheckRequest(service=INFERENCE):
            last = next(reversed(requests.values()))
            _abort_beside(exchange, last)


async def _noted(exchange: Exchange) -> Answers:
    streams = exchange.state.setdefault("streams", {})
    streams[id(exchange)] = exchange.request.request_id
    try:
        async for message in exchange.upstream():
            yield message
    finally:
        streams.pop(id(exchange), None)


MUTANTS = (
    Mutant(
        "cancelled-work-goes-on",
        "OE-CORE-CANCEL-001",
        "Nobody tells the engine that the reader of a stream has gone.",
        {GENERATE: going_on(_after_messages)},
        # A deadline, a lost connection and a client that leaves a held request cancel too, and
        # the engine counts what goes on. Some that leave within milliseconds have had a message.
        frozenset(
            {
                "OE-CORE-GEN-036",
                "OE-CORE-CANCEL-003",
                "OE-CORE-CANCEL-004",
                "OE-LOAD-009",
                "OE-ADM-012",
            }
        ),
    ),
    Mutant(
        "cancelled-id-kept",
        "OE-CORE-CANCEL-001",
        "The id of a cancelled request stays in the table of active ones.",
        {GENERATE: _id_kept},
        # Calls that a deadline or a lost connection ended are cancelled too.
        frozenset({"OE-CORE-GEN-036", "OE-CORE-CANCEL-004"}),
    ),
    Mutant(
        "cancel-ends-another",
        "OE-CORE-CANCEL-002",
        "The cancelled stream frees a row of the batch that is another request's by now.",
        {GENERATE: _wrong_row_freed},
    ),
    Mutant(
        "cancel-changes-another",
        "OE-CORE-CANCEL-002",
        "The batch is compacted after a cancellation, and a row reads its neighbour's token.",
        {GENERATE: _other_tokens},
    ),
    Mutant(
        "early-cancel-missed",
        "OE-CORE-CANCEL-003",
        "Cancellation is noticed when a message is written, and none is written yet.",
        {GENERATE: going_on(_before_messages)},
    ),
    Mutant(
        "lost-connection-missed",
        "OE-CORE-CANCEL-004",
        "Streams that a lost connection ended are cleaned up one at a time, and some are missed.",
        {GENERATE: going_on(_among_several)},
    ),
    Mutant(
        "watchers-end-together",
        "OE-CORE-CANCEL-005",
        "The watchers of a service share what the first one that leaves closes.",
        {WATCH: _watchers_together},
    ),
    Mutant(
        "watch-ends-generation",
        "OE-CORE-CANCEL-005",
        "The handler of cancellations is one for all RPCs, and ends the latest request.",
        {WATCH: _watch_ends_generation, GENERATE: _noted},
    ),
)
