"""Mutants of log probabilities, candidates and ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.mutants.behaviours import edited, edited_for
from conformance.mutants.methods import GENERATE
from conformance.mutants.mutant import Answers, Exchange, Mutant

# How many candidates an engine returns that keeps only its usual top list.
TOP = 20


def _lose_logprob(response: Any) -> None:
    for info in response.token.tokens:
        info.ClearField("logprob")


async def _first_unscored(exchange: Exchange) -> Answers:
    scored: set[int] = set()
    async for response in exchange.upstream():
        if response.HasField("token") and response.token.output_index not in scored:
            scored.add(response.token.output_index)
            _lose_logprob(response)
        yield response


def _not_a_number(response: Any) -> None:
    for info in response.token.tokens:
        if info.HasField("logprob"):
            info.logprob = float("-inf")


def _always_scored(response: Any, request: Any) -> None:
    if not request.response.return_output_logprobs:
        for info in response.token.tokens:
            info.logprob = -0.5


def _records(response: Any) -> Iterator[Any]:
    yield from response.token.tokens
    yield from response.prompt.tokens


def _selections(request: Any) -> Iterator[tuple[str, str]]:
    """Which part of a response has candidates, and how they are selected."""
    options = request.response
    yield "token", options.output_candidates.WhichOneof("selection") or ""
    yield "prompt", options.prompt_candidates.WhichOneof("selection") or ""


def _one_more(response: Any, request: Any) -> None:
    for part, selection in _selections(request):
        for info in getattr(response, part).tokens if selection == "top_n" else ():
            if info.candidates:
                last = info.candidates[-1]
                extra = info.candidates.add()
                extra.CopyFrom(last)
                extra.rank = last.rank + 1


def _clamp_all(response: Any, request: Any) -> None:
    for part, selection in _selections(request):
        for info in getattr(response, part).tokens if selection == "all" else ():
            del info.candidates[TOP:]


def _rank_from_zero(response: Any) -> None:
    for info in _records(response):
        for ranked in (info, *info.candidates):
            if ranked.HasField("rank"):
                ranked.rank -= 1


MUTANTS = (
    Mutant(
        "first-token-unscored",
        "OE-CORE-STREAM-020",
        "The first token of an output comes from the prefill step, which drops its logprob.",
        {GENERATE: _first_unscored},
    ),
    Mutant(
        "logprob-minus-infinity",
        "OE-CORE-STREAM-020",
        "Log probabilities are taken after the sampling filters and underflow.",
        {GENERATE: edited(_not_a_number)},
    ),
    Mutant(
        "always-scored",
        "OE-CORE-STREAM-021",
        "Log probabilities are sent to every caller because the engine has them anyway.",
        {GENERATE: edited_for(_always_scored)},
    ),
    Mutant(
        "one-candidate-too-many",
        "OE-CORE-STREAM-022",
        "The sampled token is appended to the best candidates.",
        {GENERATE: edited_for(_one_more)},
    ),
    Mutant(
        "all-candidates-clamped",
        "OE-CORE-STREAM-022",
        "All candidates are asked for and the usual top list comes.",
        {GENERATE: edited_for(_clamp_all)},
    ),
    Mutant(
        "ranks-from-zero",
        "OE-CORE-STREAM-023",
        "Ranks are positions in a list, which start at zero.",
        {GENERATE: edited(_rank_from_zero)},
    ),
)
