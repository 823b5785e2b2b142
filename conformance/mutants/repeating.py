"""Mutants whose equal requests have different outputs, or share what must be kept apart."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from conformance.mutants.behaviours import repaired, when
from conformance.mutants.methods import GENERATE
from conformance.mutants.mutant import Answers, Exchange, Mutant
from conformance.mutants.stream import several


def _falsy_seed(request: Any) -> None:
    if request.sampling.seed == 0:
        request.sampling.ClearField("seed")


async def _drifting(exchange: Exchange) -> Answers:
    """Every other greedy request is a little warm, as if the batch had changed its numbers."""
    sampling = exchange.request.sampling
    greedy = sampling.HasField("temperature") and sampling.temperature == 0
    if greedy:
        exchange.state["greedy"] = exchange.state.get("greedy", 0) + 1
    if greedy and exchange.state["greedy"] % 2 == 0:
        sampling.temperature = 1.5
        sampling.ClearField("seed")
    async for response in exchange.upstream():
        yield response


async def _overtaking_tokens(exchange: Exchange) -> Answers:
    """Two messages of one output leave in the wrong order."""
    held: dict[int, Message] = {}
    swapped: set[int] = set()
    async for response in exchange.upstream():
        if not response.HasField("token"):
            for late in held.values():
                yield late
            held.clear()
            yield response
            continue
        index = response.token.output_index
        before = held.pop(index, None)
        if before is not None:
            swapped.add(index)
            yield response
            yield before
        elif index in swapped:
            yield response
        else:
            held[index] = response


def _no_bypass(request: Any) -> None:
    request.kv.ClearField("bypass_prefix_cache")


def _no_salt(request: Any) -> None:
    request.kv.ClearField("cache_salt")


MUTANTS = (
    Mutant(
        "seed-zero-lost",
        "OE-CORE-GEN-037",
        "The seed is used if it is not zero.",
        {GENERATE: repaired(_falsy_seed)},
    ),
    Mutant(
        "greedy-drifts",
        "OE-CORE-GEN-038",
        "Greedy decoding depends on what was computed before.",
        {GENERATE: _drifting},
    ),
    Mutant(
        "tokens-overtake",
        "OE-CORE-STREAM-027",
        "Two workers take the messages of one output from the same queue.",
        {GENERATE: when(several, _overtaking_tokens)},
    ),
    Mutant(
        "bypass-dropped",
        "OE-CORE-USE-006",
        "The option to bypass the cache does not reach the scheduler.",
        {GENERATE: repaired(_no_bypass)},
    ),
    Mutant(
        "salt-dropped",
        "OE-CORE-USE-007",
        "The salt is not a part of the key of a block.",
        {GENERATE: repaired(_no_salt)},
    ),
)
