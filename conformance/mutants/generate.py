"""Mutants that take requests which must be refused: names, inputs and amounts."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import grpc

from conformance.mutants.behaviours import (
    edited,
    forward,
    model_facts,
    refusal,
    repaired,
    served_model,
    when,
)
from conformance.mutants.methods import BOTH_MODEL_INFOS, GENERATE, each
from conformance.mutants.mutant import Answers, Behaviour, Exchange, Mutant
from oe_wire import v1
from oe_wire.services import METHODS

ABORT = METHODS["openengine.v1.Control/Abort"]
# What the engine is asked for in place of a request that it would refuse.
SOME_TOKENS = 4


def renamed(make_id: Callable[[str], str]) -> Behaviour:
    """The engine knows the request by another id; the caller sees the id that was sent."""

    async def behaviour(exchange: Exchange) -> Answers:
        sent = exchange.request.request_id
        exchange.request.request_id = make_id(sent)
        async for response in exchange.upstream():
            response.request_id = sent
            yield response

    return behaviour


def _mint_id(request: Any) -> None:
    if not request.request_id:
        request.request_id = f"minted-{secrets.token_hex(8)}"


def _cut_id(sent: str) -> str:
    return sent.encode()[:200].decode(errors="ignore")


def _long_id(request: Any) -> bool:
    return len(request.request_id.encode()) > 200


def _short_in_characters(request: Any) -> bool:
    """Ids that only a count of characters takes for short: 256 bytes are the usual limit."""
    return len(request.request_id) <= 256 < len(request.request_id.encode())


async def _duplicate_served(exchange: Exchange) -> Answers:
    active = exchange.state.setdefault("active", set())
    sent = exchange.request.request_id
    serve = forward if sent not in active else renamed(lambda sent: f"{sent}-again")
    active.add(sent)
    try:
        async for response in serve(exchange):
            yield response
    finally:
        active.discard(sent)


async def _duplicate_ends_first(exchange: Exchange) -> Answers:
    """The refusal cleans up by id, and thereby the request that rightly has it."""
    active = exchange.state.setdefault("active", set())
    sent = exchange.request.request_id
    if sent in active:
        await exchange.ask(ABORT, v1.AbortRequest(request_id=sent))
        raise refusal(
            grpc.StatusCode.ALREADY_EXISTS, "DUPLICATE_REQUEST", "request_id is already in use"
        )
    active.add(sent)
    try:
        async for response in exchange.upstream():
            yield response
    finally:
        active.discard(sent)


async def _id_locked(exchange: Exchange) -> Answers:
    used = exchange.state.setdefault("used", set())
    sent = exchange.request.request_id
    if sent in used:
        raise refusal(
            grpc.StatusCode.ALREADY_EXISTS, "DUPLICATE_REQUEST", "request_id is already in use"
        )
    async for response in exchange.upstream():
        yield response
    used.add(sent)


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
        "id-minted",
        "OE-CORE-GEN-001",
        "A request without an id gets one from the server, which the caller cannot know.",
        {GENERATE: repaired(_mint_id)},
    ),
    Mutant(
        "id-length-unchecked",
        "OE-CORE-GEN-002",
        "Ids of any length are taken.",
        {GENERATE: when(_long_id, renamed(_cut_id))},
    ),
    Mutant(
        "id-length-in-characters",
        "OE-CORE-GEN-002",
        "The length of ids is counted in characters instead of bytes.",
        {GENERATE: when(_short_in_characters, renamed(_cut_id))},
    ),
    Mutant(
        "duplicate-served",
        "OE-CORE-GEN-003",
        "A second request under an active id is served beside the first.",
        {GENERATE: _duplicate_served},
    ),
    Mutant(
        "duplicate-ends-first",
        "OE-CORE-GEN-003",
        "The duplicate is refused, and cleaning up after it ends the first request.",
        {GENERATE: _duplicate_ends_first},
    ),
    Mutant(
        "id-locked",
        "OE-CORE-GEN-004",
        "The id of a finished request stays in the table of active ones.",
        {GENERATE: _id_locked},
    ),
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
)
