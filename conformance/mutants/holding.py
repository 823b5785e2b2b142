"""Mutants of requests during a pause, and of the caches that are emptied meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from conformance.mutants.behaviours import answered, edited, recoded, refusal, when
from conformance.mutants.methods import (
    ABORT,
    BOTH_LOADS,
    CAPABILITIES,
    GENERATE,
    RESET_CACHE,
    each,
)
from conformance.mutants.mutant import Answers, Behaviour, Exchange, Mutant, Refused
from conformance.mutants.pausing import paused, pauses, while_paused
from oe_wire import v1

ABORTED = v1.AbortResponse(status=v1.ABORT_STATUS_ABORTED)


async def _next_lost(exchange: Exchange) -> Answers:
    """The first tokens that come after a pause are those that it has swallowed."""
    seen = pauses(exchange)
    async for response in exchange.upstream():
        if pauses(exchange) > seen and not paused(exchange) and response.HasField("token"):
            seen = pauses(exchange)
            continue
        yield response


async def _next_changed(exchange: Exchange) -> Answers:
    """The output goes on after a pause from other logits."""
    seen = pauses(exchange)
    async for response in exchange.upstream():
        if pauses(exchange) > seen and not paused(exchange):
            for info in response.token.tokens:
                info.token_id = info.token_id + 1 if info.token_id < 200 else info.token_id - 1
        yield response


def _exhausted(failure: Refused, _: Any) -> Refused:
    if failure.code is grpc.StatusCode.UNAVAILABLE:
        return refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", "the queue is closed")
    return failure


def _says_hold(scope: Any) -> None:
    scope.admin.paused_admission = v1.PAUSED_ADMISSION_HOLD


def _one_running(info: Any) -> None:
    info.running_requests = max(1, info.running_requests)


def _prefix(request: Any) -> bool:
    return list(request.kinds) == [v1.CACHE_KIND_PREFIX]


def _nothing_named(response: Any) -> None:
    del response.reset[:]


def _reset_of(kinds: Callable[[Any], list[int]]) -> Behaviour:
    return answered(lambda request: v1.ResetCacheResponse(reset=kinds(request)))


MUTANTS = (
    Mutant(
        "kept-tokens-lost",
        "OE-ADM-006",
        "What was sampled when the pause began is dropped.",
        while_paused({}) | {GENERATE: _next_lost},
        # They are counted, and never arrive.
        frozenset({"OE-CORE-USE-002"}),
    ),
    Mutant(
        "kept-output-changes",
        "OE-ADM-006",
        "A held request is computed anew after the pause, and comes out otherwise.",
        while_paused({}) | {GENERATE: _next_changed},
    ),
    Mutant(
        "paused-is-exhausted",
        "OE-ADM-008",
        "New requests are refused as if the queue were full.",
        while_paused({GENERATE: recoded(_exhausted)}),
    ),
    Mutant(
        "hold-reported-reject-done",
        "OE-ADM-008",
        "Holding is reported, and requests are refused all the same.",
        {CAPABILITIES: edited(_says_hold)},
        # Requests that came during the pause are to be aborted, and there are none.
        frozenset({"OE-ADM-012"}),
    ),
    Mutant(
        "held-abort-deferred",
        "OE-ADM-012",
        "The abort of a held request waits for the scheduler's next step.",
        while_paused({ABORT: answered(lambda _: ABORTED)}),
    ),
    Mutant(
        "held-cancel-deferred",
        "OE-ADM-012",
        "A held request that its client has left counts as running until it runs again.",
        while_paused(each(BOTH_LOADS, edited(_one_running))),
    ),
    Mutant(
        "reset-pretended",
        "OE-ADM-013",
        "The cache is to be emptied when the engine is idle, and never is.",
        {RESET_CACHE: when(_prefix, _reset_of(lambda _: [v1.CACHE_KIND_PREFIX]))},
    ),
    Mutant(
        "reset-kinds-unnamed",
        "OE-ADM-014",
        "The answer does not say what was emptied.",
        {RESET_CACHE: edited(_nothing_named)},
    ),
    Mutant(
        "unlisted-kind-reset",
        "OE-ADM-014",
        "A kind of cache that the engine lacks is always empty, so its reset succeeds.",
        {
            RESET_CACHE: when(
                lambda request: v1.CACHE_KIND_ENCODER in request.kinds,
                _reset_of(lambda request: list(request.kinds)),
            )
        },
    ),
)
