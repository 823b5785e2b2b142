"""Mutants of how outputs stop: what is matched, what is shown of it, and the token limits."""

from __future__ import annotations

from typing import Any

from conformance.mutants.behaviours import edited, repaired, when
from conformance.mutants.methods import GENERATE
from conformance.mutants.mutant import Answers, Exchange, Mutant
from oe_wire import v1

# The model's end token need not be produced for a stop to be blamed on it.
SOME_EOS = 2


def _stopped(response: Any) -> bool:
    return bool(response.finished.reason == v1.FINISH_REASON_STOP)


def _lose_match(response: Any) -> None:
    if _stopped(response):
        response.finished.ClearField("stop_match")


def _match_at_limit(response: Any) -> None:
    if response.finished.reason == v1.FINISH_REASON_LENGTH:
        response.finished.stop_match.eos_token_id = SOME_EOS


def _rewrite_match(response: Any) -> None:
    match = response.finished.stop_match
    if match.HasField("stop_text"):
        match.stop_text = f"...{match.stop_text}"


async def _leak_stop(exchange: Exchange) -> Answers:
    """The matched text is shown, though it was not asked for."""
    hidden = not exchange.request.stopping.include_stop_in_output
    async for response in exchange.upstream():
        text = response.finished.stop_match.stop_text
        if text and hidden:
            leak = v1.GenerateResponse(request_id=response.request_id)
            leak.token.output_index = response.finished.output_index
            leak.token.text = text
            yield leak
        yield response


def _hide_stop(request: Any) -> None:
    request.stopping.include_stop_in_output = False


def _forget_stops(request: Any) -> None:
    options = request.stopping
    stated = [condition.stop_text or condition.stop_token_id for condition in options.conditions]
    # Conditions beyond a limit must still be refused.
    small = len(stated) <= 4 and all(len(stop.stop_text) <= 8 for stop in options.conditions)
    if small and all(stated) and not options.min_tokens:
        options.ClearField("conditions")


def _ignoring_eos(request: Any) -> bool:
    options = request.stopping
    return bool(options.ignore_eos and 2 <= options.max_tokens <= 64)


async def _end_on_eos(exchange: Exchange) -> Answers:
    """Outputs end one token before their limit and say that the end token did it."""
    options = exchange.request.stopping
    options.max_tokens -= 1
    options.min_tokens = min(options.min_tokens, options.max_tokens)
    sent: dict[int, int] = {}
    async for response in exchange.upstream():
        if response.HasField("token"):
            index = response.token.output_index
            sent[index] = sent.get(index, 0) + len(response.token.tokens)
        finished = response.finished
        at_limit = sent.get(finished.output_index) == options.max_tokens
        if finished.reason == v1.FINISH_REASON_LENGTH and at_limit:
            finished.reason = v1.FINISH_REASON_STOP
            finished.stop_match.eos_token_id = SOME_EOS
        yield response


def _forget_minimum(request: Any) -> None:
    options = request.stopping
    if not options.HasField("max_tokens") or options.min_tokens <= options.max_tokens:
        options.min_tokens = 0


def _one_more(request: Any) -> None:
    options = request.stopping
    # A minimum above the maximum must still be refused.
    if max(1, options.min_tokens) <= options.max_tokens <= 12:
        options.max_tokens += 1


MUTANTS = (
    Mutant(
        "stop-unexplained",
        "OE-CORE-STREAM-014",
        "A stop does not say what was matched.",
        {GENERATE: edited(_lose_match)},
    ),
    Mutant(
        "match-at-limit",
        "OE-CORE-STREAM-014",
        "The match of the output before is left in the message when the limit ends an output.",
        {GENERATE: edited(_match_at_limit)},
    ),
    Mutant(
        "match-rewritten",
        "OE-CORE-STREAM-015",
        "The match names the text around the stop condition instead of the condition.",
        {GENERATE: edited(_rewrite_match)},
    ),
    Mutant(
        "stop-text-leaks",
        "OE-CORE-STREAM-016",
        "The stop text has been streamed by the time it is recognised.",
        {GENERATE: _leak_stop},
    ),
    Mutant(
        "stop-never-shown",
        "OE-CORE-STREAM-016",
        "The stop is cut off even if the caller wants to see it.",
        {GENERATE: repaired(_hide_stop)},
    ),
    Mutant(
        "stops-forgotten",
        "OE-CORE-STREAM-016",
        "The caller's stop conditions are taken and never looked at.",
        {GENERATE: repaired(_forget_stops)},
    ),
    Mutant(
        "eos-obeyed",
        "OE-CORE-STREAM-017",
        "The model's end token ends outputs although it is to be ignored.",
        {GENERATE: when(_ignoring_eos, _end_on_eos)},
    ),
    Mutant(
        "minimum-forgotten",
        "OE-CORE-STREAM-018",
        "Stop conditions are looked for from the first token on, whatever the minimum.",
        {GENERATE: repaired(_forget_minimum)},
    ),
    Mutant(
        "one-token-too-many",
        "OE-CORE-STREAM-019",
        "The limit is tested before the token of a step is counted.",
        {GENERATE: repaired(_one_more)},
    ),
)
