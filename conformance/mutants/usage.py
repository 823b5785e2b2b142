"""Mutants of the token account."""

from __future__ import annotations

from typing import Any

from conformance.mutants.behaviours import edited, edited_for
from conformance.mutants.methods import GENERATE
from conformance.mutants.mutant import Answers, Exchange, Mutant
from oe_wire import v1


def _cancelled(response: Any) -> bool:
    return bool(response.finished.reason == v1.FINISH_REASON_CANCELLED)


async def _on_every_message(exchange: Exchange) -> Answers:
    sent = 0
    async for response in exchange.upstream():
        if response.HasField("token") and not response.HasField("usage"):
            sent += len(response.token.tokens)
            response.usage.completion_tokens = response.usage.total_tokens = sent
        yield response


def _drop(response: Any) -> None:
    # Aborted requests have a row of their own.
    if not _cancelled(response):
        response.ClearField("usage")


def _account(usage: Any, prompt: int, completion: int) -> None:
    usage.prompt_tokens = prompt
    usage.completion_tokens = completion
    usage.total_tokens = prompt + completion


def _last_step_only(response: Any) -> None:
    if response.HasField("usage") and not _cancelled(response):
        usage = response.usage
        _account(usage, usage.prompt_tokens, min(1, usage.completion_tokens))


def _prompt_left_out(response: Any) -> None:
    if response.HasField("usage"):
        response.usage.total_tokens = response.usage.completion_tokens


def _prompt_per_output(response: Any, request: Any) -> None:
    if response.HasField("usage"):
        usage, count = response.usage, max(1, request.sampling.num_sequences)
        _account(usage, usage.prompt_tokens * count, usage.completion_tokens)


def _cached_beyond_prompt(response: Any) -> None:
    if response.HasField("usage"):
        response.usage.cached_prompt_tokens = response.usage.prompt_tokens + 1


def _unaccounted(response: Any) -> None:
    if response.HasField("error"):
        response.ClearField("usage")


def _nothing_produced(response: Any) -> None:
    if response.HasField("usage") and _cancelled(response):
        _account(response.usage, response.usage.prompt_tokens, 0)


MUTANTS = (
    Mutant(
        "usage-on-every-message",
        "OE-CORE-USE-001",
        "A running account is sent with every token.",
        {GENERATE: _on_every_message},
    ),
    Mutant(
        "usage-missing",
        "OE-CORE-USE-001",
        "The account is computed and never attached.",
        {GENERATE: edited(_drop)},
        # The end that is an error has none either.
        frozenset({"OE-CORE-USE-008"}),
    ),
    Mutant(
        "counts-last-step",
        "OE-CORE-USE-002",
        "The account of the last step overwrites the sum, so completion_tokens is always 1.",
        {GENERATE: edited(_last_step_only)},
    ),
    Mutant(
        "total-without-prompt",
        "OE-CORE-USE-003",
        "The total leaves the prompt out.",
        {GENERATE: edited(_prompt_left_out)},
    ),
    Mutant(
        "prompt-counted-per-output",
        "OE-CORE-USE-004",
        "Several outputs are several internal requests, and the prompt is counted for each.",
        {GENERATE: edited_for(_prompt_per_output)},
    ),
    Mutant(
        "cached-beyond-prompt",
        "OE-CORE-USE-005",
        "Cached tokens are counted in whole blocks, past the end of the prompt.",
        {GENERATE: edited(_cached_beyond_prompt)},
        # Whoever asks for none is told of some as well.
        frozenset({"OE-CORE-USE-006", "OE-CORE-USE-007"}),
    ),
    Mutant(
        "failure-unaccounted",
        "OE-CORE-USE-008",
        "The error path builds its message without the account.",
        {GENERATE: edited(_unaccounted)},
    ),
    Mutant(
        "abort-unaccounted",
        "OE-CORE-USE-009",
        "The counter is reset when a request is aborted, before the account is made.",
        {GENERATE: edited(_nothing_produced)},
    ),
)
