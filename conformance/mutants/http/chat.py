"""Chat Completions of the right server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from conformance.mutants.http.ask import CONTEXT_TOKENS, MAX_CHOICES, MODEL, Ask, Fields
from conformance.mutants.http.generator import (
    LOGPROB,
    BrokenOutputError,
    Generation,
    Piece,
    Sampling,
    example_of,
    prompt_tokens,
)
from conformance.mutants.http.reply import Event, RefusedError, Reply, nested_error, streamed

PATH = "/v1/chat/completions"
DONE = "[DONE]"
_CREATED = 1_700_000_000
_numbers = itertools.count(1)


def chat(ask: Ask) -> Reply:
    """Answer a request. Raises RefusedError."""
    fields = Fields(ask.json or {})
    fields.common()
    prompt = _prompt(fields.values.get("messages"))
    if prompt_tokens(prompt) > CONTEXT_TOKENS:
        raise RefusedError(400, "the prompt is longer than the context")
    logprobs = _logprobs(fields)
    count = fields.whole("n", 1, MAX_CHOICES, 1) or 1
    generations = [
        Generation(
            Sampling(
                prompt,
                _limit(fields),
                fields.stops(),
                fields.whole("seed", -(2**63), 2**63, None),
                float(fields.values.get("temperature", 1.0) or 0.0),
                _forced(fields),
            ),
            index,
        )
        for index in range(count)
    ]
    number = next(_numbers)
    if ask.stream:
        events = _stream(number, prompt, generations, logprobs, ask.usage_wanted)
        return streamed(told(events))
    return Reply(body=_whole(number, prompt, generations, logprobs))


def _limit(fields: Fields) -> int | None:
    limit = fields.whole("max_tokens", 1, 2**31, None)
    return limit if limit is not None else fields.whole("max_completion_tokens", 1, 2**31, None)


def _prompt(messages: Any) -> str:
    if not isinstance(messages, list) or not messages:
        raise RefusedError(400, "messages must be a non-empty list")
    contents = []
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            raise RefusedError(400, "each message must have a text as content")
        if message.get("role") not in {"system", "user", "assistant", "developer"}:
            raise RefusedError(400, "unknown role")
        contents.append(message["content"])
    return "".join(contents)


def _logprobs(fields: Fields) -> int | None:
    """How many alternatives each token gets; None without logprobs."""
    wanted = fields.flag("logprobs")
    top = fields.whole("top_logprobs", 0, 20, None)
    if top is not None and not wanted:
        raise RefusedError(400, "top_logprobs is for logprobs only")
    return (top or 0) if wanted else None


def _forced(fields: Fields) -> str:
    wanted = fields.table("response_format")
    if wanted.get("type") != "json_schema":
        return ""
    try:
        return example_of(wanted["json_schema"]["schema"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RefusedError(400, "response_format has no JSON Schema") from error


def _whole(
    number: int, prompt: str, generations: list[Generation], logprobs: int | None
) -> dict[str, Any]:
    choices = []
    for generation in generations:
        pieces = list(generation.pieces())
        choice: dict[str, Any] = {
            "index": generation.index,
            "message": {
                "role": "assistant",
                "content": "".join(piece.text for piece in pieces),
                "refusal": None,
            },
            "finish_reason": generation.finish,
            "logprobs": None,
        }
        if logprobs is not None:
            content = [entry for piece in pieces for entry in _entries(piece, logprobs)]
            choice["logprobs"] = {"content": content, "refusal": None}
        choices.append(choice)
    head = _head(number, "chat.completion")
    return head | {"choices": choices, "usage": usage(prompt, generations)}


def _stream(
    number: int,
    prompt: str,
    generations: list[Generation],
    logprobs: int | None,
    usage_wanted: bool,
) -> Iterator[Event]:
    head = _head(number, "chat.completion.chunk") | ({"usage": None} if usage_wanted else {})

    def chunk(
        index: int, delta: dict[str, Any], finish: str | None = None, entries: Any = None
    ) -> Event:
        choice = {"index": index, "delta": delta, "finish_reason": finish, "logprobs": entries}
        return Event({**head, "choices": [choice]})

    for generation in generations:
        yield chunk(generation.index, {"role": "assistant", "content": ""})
    for generation in generations:
        for piece in generation.pieces():
            entries = None
            if logprobs is not None:
                entries = {"content": list(_entries(piece, logprobs)), "refusal": None}
            yield chunk(generation.index, {"content": piece.text}, None, entries)
        yield chunk(generation.index, {}, generation.finish)
    if usage_wanted:
        yield Event({**head, "choices": [], "usage": usage(prompt, generations)})
    yield Event(DONE)


def told(events: Iterator[Event]) -> Iterator[Event]:
    """A stream that tells of an error when one comes up in it, and ends."""
    try:
        yield from events
    except BrokenOutputError as broken:
        yield Event(nested_error(str(broken), "server_error"))
        yield Event(DONE)


def _head(number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": _CREATED, "model": MODEL}


def _entries(piece: Piece, top: int) -> Iterator[dict[str, Any]]:
    for token in piece.tokens:
        entry = _entry(token, LOGPROB)
        alternatives = [entry, *(_entry(b" other", -6.0 - rank) for rank in range(1, top))][:top]
        yield entry | {"top_logprobs": alternatives}


def _entry(token: bytes, logprob: float) -> dict[str, Any]:
    text = token.decode("utf-8", errors="replace")
    return {"token": text, "logprob": logprob, "bytes": list(token)}


def usage(prompt: str, generations: list[Generation]) -> dict[str, int]:
    """Counts of a finished answer."""
    asked = prompt_tokens(prompt)
    answered = sum(generation.completion_tokens for generation in generations)
    return {
        "prompt_tokens": asked,
        "completion_tokens": answered,
        "total_tokens": asked + answered,
    }
