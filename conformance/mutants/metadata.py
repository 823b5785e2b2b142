"""Mutants of the metadata rules: numbers, repeated keys, routing keys, keys of nobody."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import grpc

from conformance.mutants.behaviours import edited, forward, refusal
from conformance.mutants.methods import (
    BOTH_MODEL_INFOS,
    CAPABILITIES,
    CONTROL_HEALTH,
    GENERATE,
    SERVER_INFO,
    each,
)
from conformance.mutants.mutant import Answers, Behaviour, Exchange, Mutant
from conformance.oracle.metadata import (
    KNOWN_KEYS,
    PREFIX,
    PRIORITIES,
    PRIORITY,
    RANKS,
    ROUTING_KEY,
    TARGET_RANK,
    malformed,
)
from conformance.wire.transcript import Metadata

Pair = tuple[str, str | bytes]
# The negative of the lowest priority is none.
_HIGHEST = 2**31 - 1
_ALLOWED = {PRIORITY: PRIORITIES, TARGET_RANK: RANKS}


def rewritten(change: Callable[[Metadata], Metadata]) -> Behaviour:
    """The engine gets other metadata than the client sent."""

    async def behaviour(exchange: Exchange) -> Answers:
        exchange.metadata = change(exchange.metadata)
        async for message in exchange.upstream():
            yield message

    return behaviour


def refusing(condition: Callable[[Metadata], bool]) -> Behaviour:
    """Calls with metadata that meets the condition are refused as invalid."""

    async def behaviour(exchange: Exchange) -> Answers:
        if condition(exchange.metadata):
            details = "metadata is not valid"
            raise refusal(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT", details)
        async for message in forward(exchange):
            yield message

    return behaviour


def _bad_number(pair: Pair) -> bool:
    key, value = pair
    return key in _ALLOWED and isinstance(value, str) and bool(malformed(value, _ALLOWED[key]))


def _without_bad_numbers(metadata: Metadata) -> Metadata:
    return tuple(pair for pair in metadata if not _bad_number(pair))


def _as_python_reads(metadata: Metadata) -> Metadata:
    return tuple(_read_loosely(pair) for pair in metadata)


def _read_loosely(pair: Pair) -> Pair:
    key, value = pair
    if key not in _ALLOWED or not isinstance(value, str):
        return pair
    try:
        return key, str(int(value))
    except ValueError:
        return pair


def _last_value(metadata: Metadata) -> Metadata:
    ours = {key: value for key, value in metadata if key in KNOWN_KEYS}
    others = tuple(pair for pair in metadata if pair[0] not in KNOWN_KEYS)
    return (*others, *ours.items())


def _equal_ones_merged(metadata: Metadata) -> Metadata:
    return tuple(dict.fromkeys(metadata))


def _without_empty_routing_key(metadata: Metadata) -> Metadata:
    return tuple(pair for pair in metadata if pair != (ROUTING_KEY, ""))


def _routing_key_with_signs(metadata: Metadata) -> bool:
    return any(
        key == ROUTING_KEY and isinstance(value, str) and re.search(r"[^\w ]", value) is not None
        for key, value in metadata
    )


def _any_rank_served(metadata: Metadata) -> Metadata:
    """Ranks beyond the range go to the first one."""
    return tuple(
        (key, "0") if key == TARGET_RANK and not _bad_number((key, value)) else (key, value)
        for key, value in metadata
    )


def _well_formed_priority(metadata: Metadata) -> bool:
    keys = [key for key, _ in metadata]
    return keys.count(PRIORITY) == 1 and not any(map(_bad_number, metadata))


def _without_priority(scope: Any) -> None:
    scope.generation.supports_priority = False


def _any_problem(metadata: Metadata) -> bool:
    keys = [key for key, _ in metadata]
    return any(map(_bad_number, metadata)) or any(keys.count(key) > 1 for key in KNOWN_KEYS)


def _unknown_key(metadata: Metadata) -> bool:
    return any(key.startswith(PREFIX) and key not in KNOWN_KEYS for key, _ in metadata)


async def _limit_from_metadata(exchange: Exchange) -> Answers:
    for key, value in exchange.metadata:
        if key == "max-tokens" and isinstance(value, str):
            exchange.request.stopping.max_tokens = int(value)
    async for message in exchange.upstream():
        yield message


def _negated(metadata: Metadata) -> Metadata:
    return tuple(
        (key, str(min(-int(value), _HIGHEST)))
        if key == PRIORITY and isinstance(value, str) and not _bad_number((key, value))
        else (key, value)
        for key, value in metadata
    )


def _no_priority_sent(metadata: Metadata) -> Metadata:
    if not _well_formed_priority(metadata):
        return metadata
    return tuple(pair for pair in metadata if pair[0] != PRIORITY)


MUTANTS = (
    Mutant(
        "bad-number-ignored",
        "OE-CORE-META-001",
        "A priority or rank that cannot be read counts as not given.",
        {GENERATE: rewritten(_without_bad_numbers)},
    ),
    Mutant(
        "number-read-loosely",
        "OE-CORE-META-001",
        "Numbers are read by a library function that takes plus signs and underscores.",
        {GENERATE: rewritten(_as_python_reads)},
    ),
    Mutant(
        "last-metadata-value-wins",
        "OE-CORE-META-002",
        "Metadata is turned into a map, in which a repeated key has its last value.",
        {GENERATE: rewritten(_last_value)},
    ),
    Mutant(
        "equal-metadata-merged",
        "OE-CORE-META-002",
        "A repeated key passes when its values are equal.",
        {GENERATE: rewritten(_equal_ones_merged)},
    ),
    Mutant(
        "empty-routing-key-ignored",
        "OE-CORE-META-003",
        "An empty routing key counts as none.",
        {GENERATE: rewritten(_without_empty_routing_key)},
    ),
    Mutant(
        "routing-key-parsed",
        "OE-CORE-META-003",
        "Routing keys must be words, although they are opaque.",
        {GENERATE: refusing(_routing_key_with_signs)},
    ),
    Mutant(
        "any-rank-served",
        "OE-CORE-META-004",
        "A rank that does not exist is served by the first one.",
        {GENERATE: rewritten(_any_rank_served)},
    ),
    Mutant(
        "rank-refused",
        "OE-CORE-META-004",
        "Targeting is refused, existing ranks included.",
        {GENERATE: refusing(lambda metadata: (TARGET_RANK, "0") in metadata)},
    ),
    Mutant(
        "priority-refused",
        "OE-CORE-META-006",
        "A model without support for priorities refuses requests that carry one.",
        {
            **each((CAPABILITIES, *BOTH_MODEL_INFOS), edited(_without_priority)),
            GENERATE: refusing(_well_formed_priority),
        },
    ),
    Mutant(
        "metadata-read-everywhere",
        "OE-CORE-META-007",
        "An interceptor checks the metadata of every RPC.",
        each((SERVER_INFO, CAPABILITIES, CONTROL_HEALTH), refusing(_any_problem)),
    ),
    Mutant(
        "unknown-key-refused",
        "OE-CORE-META-008",
        "A key of the reserved prefix that is not known is an error.",
        {GENERATE: refusing(_unknown_key)},
    ),
    Mutant(
        "limit-from-metadata",
        "OE-CORE-META-009",
        "A header of an HTTP gateway is taken for a parameter of the request.",
        {GENERATE: _limit_from_metadata},
    ),
    Mutant(
        "priority-ignored",
        "OE-CORE-META-010",
        "Priorities are advertised and requests run in the order of their arrival.",
        {GENERATE: rewritten(_no_priority_sent)},
    ),
    Mutant(
        "priority-reversed",
        "OE-CORE-META-010",
        "The lowest number is scheduled first, as in other engines.",
        {GENERATE: rewritten(_negated)},
    ),
)
