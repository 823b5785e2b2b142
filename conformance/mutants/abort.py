"""Mutants of Abort and of the streams that it ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import grpc

from conformance.mutants.behaviours import answered, edited, forgiven, refusal, when
from conformance.mutants.methods import ABORT, CAPABILITIES, GENERATE
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from conformance.mutants.stream import overtaken_by_cancellation, several
from oe_wire import v1

# Beyond the time that an aborted stream may take, with what a loaded machine adds to it.
LATE_SECONDS = 15.0
ALREADY_FINISHED = v1.AbortResponse(status=v1.ABORT_STATUS_ALREADY_FINISHED)


def _without_target(request: Any) -> bool:
    return request.WhichOneof("target") is None


def _of_one(request: Any) -> bool:
    return bool(request.request_id)


def _of_session(request: Any) -> bool:
    return bool(request.HasField("kv_session"))


def _never_aborted(response: Any) -> None:
    response.status = v1.ABORT_STATUS_ALREADY_FINISHED


async def _forgetful(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        if response.status == v1.ABORT_STATUS_ALREADY_FINISHED:
            raise refusal(grpc.StatusCode.NOT_FOUND, "REQUEST_NOT_FOUND", "request_id is not known")
        yield response


def _cancelled(response: Any) -> bool:
    return bool(response.finished.reason == v1.FINISH_REASON_CANCELLED)


async def _ends_late(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        if _cancelled(response):
            await asyncio.sleep(LATE_SECONDS)
        yield response


async def _ends_cancelled(exchange: Exchange) -> Answers:
    aborted = False
    async for response in exchange.upstream():
        aborted = aborted or _cancelled(response)
        yield response
    if aborted:
        raise Refused(grpc.StatusCode.CANCELLED, "the request was aborted")


def _says_length(response: Any) -> None:
    if _cancelled(response):
        response.finished.reason = v1.FINISH_REASON_LENGTH


async def _second_fails(exchange: Exchange) -> Answers:
    aborted = exchange.state.setdefault("aborted", set())
    target = exchange.request.request_id
    if target in aborted:
        raise Refused(grpc.StatusCode.ABORTED, "the request is being aborted")
    async for response in exchange.upstream():
        if response.status == v1.ABORT_STATUS_ABORTED:
            aborted.add(target)
        yield response


async def _noted(exchange: Exchange) -> Answers:
    active = exchange.state.setdefault("active", set())
    active.add(exchange.request.request_id)
    try:
        async for response in exchange.upstream():
            yield response
    finally:
        active.discard(exchange.request.request_id)


async def _by_prefix(exchange: Exchange) -> Answers:
    """Internal ids are the caller's with a suffix, and Abort looks for the beginning."""
    wanted = exchange.request.request_id
    for other in tuple(exchange.state.get("active", ())) if wanted else ():
        if other != wanted and other.startswith(wanted):
            # It may have ended meanwhile, and then nothing is to be aborted.
            with suppress(Refused):
                await exchange.ask(exchange.method, v1.AbortRequest(request_id=other))
    async for response in exchange.upstream():
        yield response


def _without_all_requests(scope: Any) -> None:
    targets = [
        kind for kind in scope.core.abort_targets if kind != v1.ABORT_TARGET_KIND_ALL_REQUESTS
    ]
    scope.core.abort_targets[:] = targets


MUTANTS = (
    Mutant(
        "abort-nothing",
        "OE-CORE-ABORT-001",
        "An Abort without a target finds nothing to abort and is content.",
        {ABORT: when(_without_target, answered(lambda _: ALREADY_FINISHED))},
    ),
    Mutant(
        "unknown-id-already-finished",
        "OE-CORE-ABORT-002",
        "Finished ids are not remembered, so every unknown one counts as finished.",
        {ABORT: forgiven(grpc.StatusCode.NOT_FOUND, answered(lambda _: ALREADY_FINISHED))},
    ),
    Mutant(
        "abort-answers-too-late",
        "OE-CORE-ABORT-003",
        "The answer looks at the request after it was aborted, and finds it finished.",
        {ABORT: when(_of_one, edited(_never_aborted))},
        # The same answer for a request that a pause holds.
        frozenset({"OE-ADM-012"}),
    ),
    Mutant(
        "finished-id-forgotten",
        "OE-CORE-ABORT-004",
        "The id of a finished request is forgotten at once, whatever retention is reported.",
        {ABORT: when(_of_one, _forgetful)},
    ),
    Mutant(
        "late-cancel",
        "OE-CORE-ABORT-005",
        "The aborted stream ends when its generation would have ended.",
        # Streams of several outputs are left alone: this mutant costs seconds for each call.
        {GENERATE: when(lambda request: not several(request), _ends_late)},
        # Requests that a pause aborts, that are aborted while they are held, or that end with all
        # others, end as late.
        frozenset({"OE-ADM-004", "OE-ADM-012", "OE-CORE-ABORT-009"}),
    ),
    Mutant(
        "aborted-status",
        "OE-CORE-ABORT-005",
        "The stream of an aborted request ends with the status CANCELLED.",
        {GENERATE: _ends_cancelled},
        # A stream ends with OK after its last terminal event, also of a pause by ABORT.
        frozenset({"OE-CORE-STREAM-012", "OE-ADM-004"}),
    ),
    Mutant(
        "aborted-says-length",
        "OE-CORE-ABORT-006",
        "An aborted output claims to have reached its length.",
        {GENERATE: edited(_says_length)},
    ),
    Mutant(
        "tokens-after-cancellation",
        "OE-CORE-ABORT-007",
        "Tokens that were on their way follow the terminal event of an aborted output.",
        {GENERATE: when(several, overtaken_by_cancellation)},
        # The same order is wrong for every terminal event.
        frozenset({"OE-CORE-STREAM-006"}),
    ),
    Mutant(
        "second-abort-fails",
        "OE-CORE-ABORT-008",
        "A second Abort of the same request fails because the first is under way.",
        {ABORT: when(_of_one, _second_fails)},
    ),
    Mutant(
        "abort-by-prefix",
        "OE-CORE-ABORT-008",
        "Abort also ends requests whose id begins with the given one.",
        {GENERATE: _noted, ABORT: _by_prefix},
    ),
    Mutant(
        "abort-all-not-listed",
        "OE-CORE-ABORT-011",
        "Aborting all requests works and is not listed.",
        {CAPABILITIES: edited(_without_all_requests)},
    ),
    Mutant(
        "session-abort-pretended",
        "OE-CORE-ABORT-011",
        "Abort of a KV session is answered although the engine has no sessions.",
        {ABORT: when(_of_session, answered(lambda _: ALREADY_FINISHED))},
    ),
)
