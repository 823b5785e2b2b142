"""Mutants of the load that is read: wrong names, numbers, ranks, and times of silence."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import grpc

from conformance.mutants.behaviours import edited, refusal, refused, repaired
from conformance.mutants.methods import (
    BOTH_LOADS,
    CAPABILITIES,
    CONTROL_GET_LOAD,
    WATCH_LOAD,
    each,
)
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from conformance.mutants.pausing import while_paused

OTHER_INSTANCE = "0" * 32
UNIMPLEMENTED = Refused(grpc.StatusCode.UNIMPLEMENTED, "no such method")
PAUSED = refusal(grpc.StatusCode.UNAVAILABLE, "OVERLOADED", "generation is paused")
WATCHED = refusal(grpc.StatusCode.UNAVAILABLE, "OVERLOADED", "the load is being streamed")


def _without_running_tokens(load: Any) -> None:
    load.ClearField("running_tokens")


def _other_instance(message: Any) -> None:
    message.instance_id = OTHER_INSTANCE


def _counts_itself(load: Any) -> None:
    for each_level in (load, *load.ranks[:1]):
        each_level.queued_requests += 1


def _without_batch_size(load: Any) -> None:
    load.ClearField("decode_batch_size")


def _without_queued(scope: Any) -> None:
    names = [name for name in scope.observability.load.reported_fields if name[:6] != "queued"]
    scope.observability.load.reported_fields[:] = names


def _asks_for_ranks(request: Any) -> None:
    request.include_per_rank = True


def _rank_zero_unset(load: Any) -> None:
    for rank in load.ranks:
        if not rank.data_parallel_rank:
            rank.ClearField("data_parallel_rank")


def _last_rank_missing(load: Any) -> None:
    del load.ranks[-1:]


def _no_ranks_supported(scope: Any) -> None:
    if scope.observability.HasField("load"):
        scope.observability.load.supports_per_rank = False


def _reserve_counted(load: Any) -> None:
    for rank in load.ranks:
        rank.total_kv_blocks += 1


def _levels(change: Callable[[Any], None]) -> Callable[[Any], None]:
    """The same change of the ranks, with totals that remain their sums, or of the totals alone."""

    def edit(load: Any) -> None:
        if not load.ranks:
            change(load)
            return
        for rank in load.ranks:
            change(rank)
        for name in ("used_kv_blocks", "total_kv_blocks", "running_requests"):
            setattr(load, name, sum(getattr(rank, name) for rank in load.ranks))

    return edit


def _twice_the_blocks(level: Any) -> None:
    level.total_kv_blocks *= 2


def _more_than_all(level: Any) -> None:
    level.used_kv_blocks = level.total_kv_blocks + 1


def _busy_or_not(level: Any) -> None:
    level.running_requests = min(1, level.running_requests)


async def _noted(exchange: Exchange) -> Answers:
    exchange.state["streams"] = exchange.state.get("streams", 0) + 1
    try:
        async with aclosing(exchange.upstream()) as answers:
            async for response in answers:
                yield response
    finally:
        exchange.state["streams"] -= 1


async def _refused_beside_streams(exchange: Exchange) -> Answers:
    if exchange.state.get("streams"):
        raise WATCHED
    async for load in exchange.upstream():
        yield load


async def _every_reading_counts(exchange: Exchange) -> Answers:
    exchange.state["readings"] = exchange.state.get("readings", 0) + 1
    async for load in exchange.upstream():
        load.running_tokens += exchange.state["readings"]
        yield load


MUTANTS = (
    Mutant(
        "load-alias-missing",
        "OE-LOAD-001",
        "GetLoad moved to another service, and the old name was forgotten.",
        {CONTROL_GET_LOAD: refused(UNIMPLEMENTED)},
        # It is an RPC of an advertised profile.
        frozenset({"OE-CORE-CAP-008"}),
    ),
    Mutant(
        "load-alias-differs",
        "OE-LOAD-001",
        "The old name has the old handler, which does not know every field.",
        {CONTROL_GET_LOAD: edited(_without_running_tokens)},
        # The field is listed for every LoadInfo.
        frozenset({"OE-LOAD-004"}),
    ),
    Mutant(
        "load-of-other-instance",
        "OE-LOAD-002",
        "The load is told by a process of its own, with an id of its own.",
        each(BOTH_LOADS, edited(_other_instance)),
    ),
    Mutant(
        "stream-of-other-instance",
        "OE-LOAD-002",
        "Each response of a load stream names the process that samples.",
        {WATCH_LOAD: edited(_other_instance)},
        # Every message of a process has to name the same instance.
        frozenset({"OE-CORE-CAP-017"}),
    ),
    Mutant(
        "load-counts-its-own-call",
        "OE-LOAD-003",
        "The call that reads the load counts as a queued request.",
        each(BOTH_LOADS, edited(_counts_itself)),
    ),
    Mutant(
        "reported-field-missing",
        "OE-LOAD-004",
        "A field is listed that this build does not measure.",
        each(BOTH_LOADS, edited(_without_batch_size)),
    ),
    Mutant(
        "queue-not-reported",
        "OE-LOAD-005",
        "The length of the queue is measured and not listed.",
        {CAPABILITIES: edited(_without_queued)},
    ),
    Mutant(
        "ranks-unasked",
        "OE-LOAD-006",
        "The ranks come with every load.",
        each(BOTH_LOADS, repaired(_asks_for_ranks)),
    ),
    Mutant(
        "rank-zero-unset",
        "OE-LOAD-006",
        "Rank 0 is left out as a default value would be.",
        each(BOTH_LOADS, edited(_rank_zero_unset)),
    ),
    Mutant(
        "last-rank-missing",
        "OE-LOAD-006",
        "The range of the ranks ends one too early.",
        each(BOTH_LOADS, edited(_last_rank_missing)),
    ),
    Mutant(
        "ranks-not-supported",
        "OE-LOAD-006",
        "Ranks are said to be unsupported and are listed all the same.",
        {CAPABILITIES: edited(_no_ranks_supported)},
    ),
    Mutant(
        "rank-counts-its-reserve",
        "OE-LOAD-007",
        "A rank counts a block that it keeps for itself, the total does not.",
        each(BOTH_LOADS, edited(_reserve_counted)),
    ),
    Mutant(
        "blocks-counted-twice",
        "OE-LOAD-008",
        "Keys and values are counted as blocks of their own, in the load only.",
        each(BOTH_LOADS, edited(_levels(_twice_the_blocks))),
    ),
    Mutant(
        "more-used-than-there-are",
        "OE-LOAD-008",
        "A shared block is counted for each of its users.",
        each(BOTH_LOADS, edited(_levels(_more_than_all))),
    ),
    Mutant(
        "running-is-a-flag",
        "OE-LOAD-009",
        "running_requests says whether the engine is busy, and not how much.",
        each(BOTH_LOADS, edited(_levels(_busy_or_not))),
    ),
    Mutant(
        "load-refused-while-streamed",
        "OE-LOAD-010",
        "The only sampler belongs to the streams while there are any.",
        {WATCH_LOAD: _noted} | each(BOTH_LOADS, _refused_beside_streams),
        # A stream that is read slowly must not stop GetLoad either.
        frozenset({"OE-LOAD-039"}),
    ),
    Mutant(
        "no-load-while-paused",
        "OE-LOAD-011",
        "GetLoad is refused with everything else during a pause.",
        while_paused(each(BOTH_LOADS, refused(PAUSED))),
    ),
    Mutant(
        "no-stream-while-paused",
        "OE-LOAD-011",
        "The sampler is paused with generation, so a new stream is refused.",
        while_paused({WATCH_LOAD: refused(PAUSED)}),
    ),
    Mutant(
        "reading-counts-as-work",
        "OE-LOAD-012",
        "Every reading of the load adds to the tokens that it counts.",
        each(BOTH_LOADS, _every_reading_counts),
    ),
)
