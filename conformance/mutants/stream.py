"""Mutants of a stream's shape: ids, indexes, order, prompt information and ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import grpc
from google.protobuf.message import Message

from conformance.mutants.behaviours import edited, edited_for, when
from conformance.mutants.methods import GENERATE
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from oe_wire import v1

CUT = (v1.FINISH_REASON_CANCELLED,)


def several(request: Any) -> bool:
    """Whether more than one output is asked for."""
    return bool(request.sampling.num_sequences > 1)


def is_last(response: Any) -> bool:
    """Whether a right engine sends nothing after this response: only the last has usage."""
    return bool(response.HasField("usage"))


def _suffix_id(response: Any) -> None:
    response.request_id += "-0"


def _lose_zero_index(response: Any) -> None:
    for name in ("token", "finished"):
        if response.HasField(name) and not getattr(response, name).output_index:
            getattr(response, name).ClearField("output_index")


async def _heartbeat(exchange: Exchange) -> Answers:
    """An event-less response before the first token, once."""
    sent = False
    async for response in exchange.upstream():
        if not sent and response.HasField("token"):
            sent = True
            yield v1.GenerateResponse(request_id=response.request_id)
        yield response


async def _cumulative(exchange: Exchange) -> Answers:
    text: dict[int, str] = {}
    async for response in exchange.upstream():
        if response.HasField("token"):
            index = response.token.output_index
            text[index] = response.token.text = text.get(index, "") + response.token.text
        yield response


async def _last_finish_only(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        ended = response.HasField("finished") and response.finished.reason not in CUT
        if not ended or is_last(response):
            yield response


def _overtaking(reasons: Iterable[int]) -> Any:
    """Terminal events with one of `reasons` overtake their output's last tokens."""
    wanted = frozenset(reasons)

    async def behaviour(exchange: Exchange) -> Answers:
        held: dict[int, Message] = {}
        async for response in exchange.upstream():
            if response.HasField("token"):
                before = held.pop(response.token.output_index, None)
                held[response.token.output_index] = response
                if before is not None:
                    yield before
                continue
            index = response.finished.output_index
            late = held.pop(index, None) if response.HasField("finished") else None
            overtakes = response.finished.reason in wanted and not is_last(response)
            for item in (response, late) if overtakes else (late, response):
                if item is not None:
                    yield item

    return behaviour


overtaken_by_end = _overtaking({v1.FINISH_REASON_LENGTH, v1.FINISH_REASON_STOP})
overtaken_by_cancellation = _overtaking(CUT)


def _asked_for_prompt(request: Any) -> bool:
    options = request.response
    return bool(
        options.return_prompt_logprobs
        or options.HasField("prompt_candidates")
        or options.HasField("prompt_logprob_start")
    )


async def _prompt_unasked(exchange: Exchange) -> Answers:
    """The prompt is echoed to every caller, before the first event."""
    ids = list(exchange.request.token_ids.ids) or [0]
    due = not _asked_for_prompt(exchange.request)
    async for response in exchange.upstream():
        if due:
            due = False
            tokens = [v1.TokenInfo(token_id=token) for token in ids]
            prompt = v1.PromptOutput(tokens=tokens)
            yield v1.GenerateResponse(request_id=response.request_id, prompt=prompt)
        yield response


async def _prompt_late(exchange: Exchange) -> Answers:
    prompt = None
    async for response in exchange.upstream():
        if response.HasField("prompt"):
            prompt = response
            continue
        if prompt is not None and not response.HasField("token"):
            yield prompt
            prompt = None
        yield response
        if prompt is not None:
            yield prompt
            prompt = None


def _first_has_logprob(response: Any, request: Any) -> None:
    if response.prompt.tokens and not request.response.prompt_logprob_start:
        response.prompt.tokens[0].logprob = -1.0


def _short_prompt(response: Any) -> None:
    if response.prompt.tokens:
        del response.prompt.tokens[-1]


async def _goes_on(exchange: Exchange) -> Answers:
    """An error with text after it."""
    async for response in exchange.upstream():
        yield response
        if response.HasField("error"):
            late = v1.GenerateResponse(request_id=response.request_id)
            late.token.text = "."
            late.token.output_index = 0
            yield late


async def _raises_at_end(exchange: Exchange) -> Answers:
    """Everything arrives, and then the clean-up of what ended well fails."""
    well = True
    async for response in exchange.upstream():
        cut = response.finished.reason == v1.FINISH_REASON_CANCELLED
        well = well and not (cut or response.HasField("error"))
        yield response
    if well:
        raise Refused(
            grpc.StatusCode.UNKNOWN, "Unexpected <class 'KeyError'>: clean-up of the request"
        )


async def _usage_apart(exchange: Exchange) -> Answers:
    async for response in exchange.upstream():
        if not is_last(response) or response.HasField("error"):
            yield response
            continue
        extra = v1.GenerateResponse(request_id=response.request_id, usage=response.usage)
        response.ClearField("usage")
        yield response
        yield extra


async def _silent_limit(exchange: Exchange) -> Answers:
    """The stream just ends where the last output reaches its limit."""
    held = None
    async for response in exchange.upstream():
        limit = response.finished.reason == v1.FINISH_REASON_LENGTH
        if held is not None and is_last(response) and limit:
            held.usage.CopyFrom(response.usage)
            yield held
            return
        if held is not None:
            yield held
        held = response
    if held is not None:
        yield held


async def _empty_output(exchange: Exchange) -> Answers:
    """A step that releases no text is sent all the same, once."""
    sent = False
    async for response in exchange.upstream():
        yield response
        if not sent and response.HasField("token") and not is_last(response):
            sent = True
            empty = v1.GenerateResponse(request_id=response.request_id)
            empty.token.output_index = response.token.output_index
            yield empty


MUTANTS = (
    Mutant(
        "id-suffixed",
        "OE-CORE-STREAM-001",
        "Responses carry the engine's internal id, which is the caller's with a suffix.",
        {GENERATE: edited(_suffix_id)},
    ),
    Mutant(
        "heartbeat-without-event",
        "OE-CORE-STREAM-002",
        "While the prompt is computed the engine sends responses that hold nothing but the id.",
        {GENERATE: _heartbeat},
    ),
    Mutant(
        "index-zero-lost",
        "OE-CORE-STREAM-003",
        "The index is assigned as if zero were its default, so it is absent for the first output.",
        {GENERATE: edited(_lose_zero_index)},
    ),
    Mutant(
        "cumulative-text",
        "OE-CORE-STREAM-004",
        "Each message repeats the text so far, as the engine's own API does.",
        # Repeated text can spell a stop text by accident, which would be another row's matter.
        {GENERATE: when(lambda request: not request.stopping.conditions, _cumulative)},
        # What a guide allows is then said more than once, and how often depends on how many
        # tokens came together, so that two equal outputs differ.
        frozenset({"OE-CORE-STREAM-026", "OE-CORE-GEN-037"}),
    ),
    Mutant(
        "only-last-output-finishes",
        "OE-CORE-STREAM-005",
        "Of several outputs only the one that ends last gets a terminal event.",
        {GENERATE: _last_finish_only},
        # An output without its end in a stream that ended well is what 013 is about.
        frozenset({"OE-CORE-STREAM-013"}),
    ),
    Mutant(
        "end-overtakes-tokens",
        "OE-CORE-STREAM-006",
        "The detokenizer's last text of an output is flushed after its terminal event.",
        {GENERATE: when(several, overtaken_by_end)},
    ),
    Mutant(
        "prompt-echoed-unasked",
        "OE-CORE-STREAM-007",
        "The prompt's tokens are sent to every caller.",
        {GENERATE: _prompt_unasked},
    ),
    Mutant(
        "prompt-after-first-token",
        "OE-CORE-STREAM-008",
        "Prompt log probabilities are ready a step late and come after the first token.",
        {GENERATE: _prompt_late},
    ),
    Mutant(
        "first-prompt-token-scored",
        "OE-CORE-STREAM-009",
        "The first prompt token gets a log probability, though nothing precedes it.",
        {GENERATE: edited_for(_first_has_logprob)},
    ),
    Mutant(
        "prompt-one-record-short",
        "OE-CORE-STREAM-010",
        "Prompt records are shifted by one, so that the last token of the prompt has none.",
        {GENERATE: edited(_short_prompt)},
    ),
    Mutant(
        "output-after-error",
        "OE-CORE-STREAM-011",
        "A failed request goes on sending what its queue still holds.",
        {GENERATE: _goes_on},
        # The error ends the stream by 012 as well, and its usage is not on the last message.
        frozenset({"OE-CORE-STREAM-012", "OE-CORE-USE-001"}),
    ),
    Mutant(
        "status-after-last-event",
        "OE-CORE-STREAM-012",
        "All events arrive, then an exception in the clean-up turns the status into UNKNOWN.",
        # One output at a time ends well: whether requests do is asked by many checks.
        {GENERATE: when(several, _raises_at_end)},
    ),
    Mutant(
        "usage-in-extra-message",
        "OE-CORE-STREAM-012",
        "The account comes in a message of its own after the last terminal event.",
        {GENERATE: _usage_apart},
        # That message has no event.
        frozenset({"OE-CORE-STREAM-002"}),
    ),
    Mutant(
        "no-end-at-limit",
        "OE-CORE-STREAM-013",
        "Where the token limit ends the last output the stream just closes.",
        {GENERATE: when(several, _silent_limit)},
        # The output that lacks its end lacks its one GenerationFinished.
        frozenset({"OE-CORE-STREAM-005"}),
    ),
    Mutant(
        "empty-outputs",
        "OE-CORE-STREAM-024",
        "A step whose text is held back is sent as a TokenOutput with nothing in it.",
        {GENERATE: _empty_output},
    ),
)
