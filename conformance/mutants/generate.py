"""Mutants that take requests which must be refused: models, inputs, amounts, void stops."""

from __future__ import annotations

from typing import Any

import grpc

from conformance.mutants.behaviours import (
    edited,
    model_facts,
    repaired,
    served_model,
    when,
)
from conformance.mutants.methods import BOTH_MODEL_INFOS, GENERATE, each
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from oe_wire import v1

# What the engine is asked for in place of a request that it would refuse.
SOME_TOKENS = 4


async def _any_model(exchange: Exchange) -> Answers:
    facts = await model_facts(exchange)
    asked = exchange.request.model
    if asked and asked not in {facts.served_model_name, *facts.served_model_aliases}:
        exchange.request.model = await served_model(exchange)
    async for response in exchange.upstream():
        yield response


async def _default_model(exchange: Exchange) -> Answers:
    exchange.request.model = exchange.request.model or await served_model(exchange)
    async for response in exchange.upstream():
        yield response


def _some_input(request: Any) -> None:
    if request.WhichOneof("input") is None:
        request.prompt = "a"


def _without_ids(request: Any) -> bool:
    return bool(request.HasField("token_ids") and not request.token_ids.ids)


async def _empty_ids(exchange: Exchange) -> Answers:
    """Generates from nothing, and counts nothing as prompt."""
    exchange.request.prompt = "a"
    async for response in exchange.upstream():
        _recount(response, 0)
        yield response


def _recount(response: Any, prompt_tokens: int) -> None:
    """Let the account say what it would if the engine had taken the request as it came."""
    if response.HasField("usage"):
        response.usage.prompt_tokens = prompt_tokens
        response.usage.total_tokens = prompt_tokens + response.usage.completion_tokens


def _deny_text(info: Any) -> None:
    info.supports_text_input = False


async def _cut_prompt(exchange: Exchange) -> Answers:
    """Prompts are cut to fit the window, with some room for the output."""
    window = (await model_facts(exchange)).max_context_length
    ids = exchange.request.token_ids.ids
    sent = len(ids)
    if sent > window:
        del ids[window - SOME_TOKENS :]
    async for response in exchange.upstream():
        if sent > window:
            _recount(response, sent)
        yield response


async def _fail_at_window(exchange: Exchange) -> Answers:
    window = (await model_facts(exchange)).max_context_length
    request = exchange.request
    spans = len(request.token_ids.ids) + request.stopping.max_tokens > window
    async for response in exchange.upstream():
        if spans and response.finished.reason == v1.FINISH_REASON_LENGTH:
            error = v1.EngineError(code=v1.ERROR_CODE_INTERNAL, message="out of positions")
            response.error.CopyFrom(error)
        yield response


def _one_for_none(request: Any) -> None:
    if request.sampling.HasField("num_sequences") and not request.sampling.num_sequences:
        request.sampling.num_sequences = 1


def _wants_nothing(request: Any) -> bool:
    return bool(request.stopping.HasField("max_tokens") and not request.stopping.max_tokens)


async def _nothing_served(exchange: Exchange) -> Answers:
    """One token is computed and thrown away."""
    exchange.request.stopping.max_tokens = 1
    async for response in exchange.upstream():
        if response.HasField("token"):
            continue
        if response.HasField("usage"):
            response.usage.completion_tokens = 0
            _recount(response, response.usage.prompt_tokens)
        yield response


def _default_for_none(request: Any) -> None:
    if _wants_nothing(request):
        request.stopping.max_tokens = SOME_TOKENS


def _lower_minimum(request: Any) -> None:
    options = request.stopping
    if options.max_tokens and options.min_tokens > options.max_tokens:
        options.min_tokens = options.max_tokens


async def _clamp_output(exchange: Exchange) -> Answers:
    most = (await model_facts(exchange)).max_output_tokens
    options = exchange.request.stopping
    options.max_tokens = min(options.max_tokens, most)
    async for response in exchange.upstream():
        yield response


def _deny_input(info: Any) -> None:
    info.ClearField("supports_text_input")
    info.ClearField("supports_token_ids_input")


async def _speaks_first(exchange: Exchange) -> Answers:
    """The stream is begun before the request has been looked at."""
    try:
        async for response in exchange.upstream():
            yield response
    except Refused as refusal:
        if refusal.code is grpc.StatusCode.INVALID_ARGUMENT:
            token = v1.TokenOutput(output_index=0, text=" ")
            yield v1.GenerateResponse(request_id=exchange.request.request_id, token=token)
        raise


def _drop_void(request: Any) -> None:
    void = [
        item
        for item in request.stopping.conditions
        if item.WhichOneof("condition") is None or item == v1.StopCondition(stop_text="")
    ]
    for item in void:
        request.stopping.conditions.remove(item)


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "unknown-model-served",
        "OE-CORE-GEN-005",
        "A server of one model serves it under any name.",
        {GENERATE: _any_model},
    ),
    Mutant(
        "empty-model-served",
        "OE-CORE-GEN-005",
        "An empty model name means the default model.",
        {GENERATE: _default_model},
    ),
    Mutant(
        "no-input-served",
        "OE-CORE-GEN-006",
        "A request without input is served as if it had an empty prompt.",
        {GENERATE: repaired(_some_input)},
    ),
    Mutant(
        "empty-ids-served",
        "OE-CORE-GEN-007",
        "An empty list of token ids gets a begin token added and is served.",
        {GENERATE: when(_without_ids, _empty_ids)},
    ),
    Mutant(
        "text-denied-but-served",
        "OE-CORE-GEN-008",
        "ModelInfo says that text is not taken, and Generate takes it.",
        each(BOTH_MODEL_INFOS, edited(_deny_text)),
    ),
    Mutant(
        "no-input-reported",
        "OE-CORE-GEN-009",
        "ModelInfo leaves both kinds of input out, as if none could be sent.",
        each(BOTH_MODEL_INFOS, edited(_deny_input)),
    ),
    Mutant(
        "prompt-cut-to-window",
        "OE-CORE-GEN-010",
        "A prompt that is too long is silently cut short.",
        {GENERATE: _cut_prompt},
    ),
    Mutant(
        "fails-at-window",
        "OE-CORE-GEN-011",
        "Nobody tests whether the output fits, and the end of the window raises.",
        {GENERATE: _fail_at_window},
    ),
    Mutant(
        "zero-sequences-as-one",
        "OE-CORE-GEN-012",
        "A present zero is read like an absent field: one sequence.",
        {GENERATE: repaired(_one_for_none)},
    ),
    Mutant(
        "zero-tokens-unannounced",
        "OE-CORE-GEN-013",
        "Zero max_tokens gives an empty output, and nothing says that it may be asked for.",
        {GENERATE: when(_wants_nothing, _nothing_served)},
    ),
    Mutant(
        "zero-tokens-as-default",
        "OE-CORE-GEN-013",
        "Zero max_tokens is read like an absent field and means the default.",
        {GENERATE: repaired(_default_for_none)},
        # More than the zero tokens of the limit are sent.
        frozenset({"OE-CORE-STREAM-019"}),
    ),
    Mutant(
        "minimum-lowered",
        "OE-CORE-GEN-014",
        "A minimum above the maximum is lowered to it.",
        {GENERATE: repaired(_lower_minimum)},
    ),
    Mutant(
        "output-limit-clamped",
        "OE-CORE-GEN-015",
        "More output than possible is lowered to what is possible.",
        {GENERATE: _clamp_output},
    ),
    Mutant(
        "void-stops-dropped",
        "OE-CORE-GEN-021",
        "Stop conditions that say nothing are skipped.",
        {GENERATE: repaired(_drop_void)},
    ),
    Mutant(
        "speaks-before-refusing",
        "OE-CORE-GEN-033",
        "The handler opens the stream, and then validates the request.",
        {GENERATE: _speaks_first},
        # A refusal of log probabilities is one too, and no more the first thing said.
        frozenset({"OE-CORE-GEN-026"}),
    ),
)
