"""Completions of the right server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from conformance.mutants.http.ask import CONTEXT_TOKENS, MAX_CHOICES, MODEL, Ask, Fields
from conformance.mutants.http.chat import DONE, told, usage
from conformance.mutants.http.generator import LOGPROB, Generation, Piece, Sampling, prompt_tokens
from conformance.mutants.http.reply import Event, RefusedError, Reply, streamed

PATH = "/v1/completions"
_CREATED = 1_700_000_000
_numbers = itertools.count(1)


def completions(ask: Ask) -> Reply:
    """Answer a request. Raises RefusedError."""
    fields = Fields(ask.json or {})
    fields.common()
    prompts = _prompts(fields.values.get("prompt"))
    echo = fields.flag("echo")
    limit = fields.whole("max_tokens", 0 if echo else 1, 2**31, 16)
    count = fields.whole("n", 1, MAX_CHOICES, 1) or 1
    logprobs = fields.whole("logprobs", 0, 5, None)
    generations = [
        Generation(
            Sampling(
                prompt,
                limit,
                fields.stops(),
                fields.whole("seed", -(2**63), 2**63, None),
                float(fields.values.get("temperature", 1.0) or 0.0),
            ),
            number,
        )
        for number, (prompt, _) in enumerate(itertools.product(prompts, range(count)))
    ]
    head = _head(next(_numbers))
    if ask.stream:
        return streamed(told(_stream(head, generations, logprobs, ask.usage_wanted)))
    return Reply(body=_whole(head, generations, logprobs, echo))


def _prompts(prompt: Any) -> list[str]:
    prompts = [prompt] if isinstance(prompt, str) else prompt
    if not isinstance(prompts, list) or not prompts:
        raise RefusedError(400, "prompt must be a string or a list of strings")
    if not all(isinstance(each, str) for each in prompts):
        raise RefusedError(400, "each prompt must be a string")
    if any(prompt_tokens(each) > CONTEXT_TOKENS for each in prompts):
        raise RefusedError(400, "the prompt is longer than the context")
    return prompts


def _whole(
    head: dict[str, Any], generations: list[Generation], logprobs: int | None, echo: bool
) -> dict[str, Any]:
    choices = []
    for generation in generations:
        pieces = list(generation.pieces())
        text = "".join(piece.text for piece in pieces)
        choices.append(
            {
                "index": generation.index,
                "text": generation.sampling.prompt + text if echo else text,
                "finish_reason": generation.finish,
                "logprobs": None if logprobs is None else _lists(pieces, logprobs),
            }
        )
    return head | {"choices": choices, "usage": _usage(generations)}


def _stream(
    head: dict[str, Any],
    generations: list[Generation],
    logprobs: int | None,
    usage_wanted: bool,
) -> Iterator[Event]:
    if usage_wanted:
        head = head | {"usage": None}
    for generation in generations:
        for piece in generation.pieces():
            lists = None if logprobs is None else _lists([piece], logprobs)
            yield _message(head, generation.index, piece.text, None, lists)
        yield _message(head, generation.index, "", generation.finish, None)
    if usage_wanted:
        yield Event({**head, "choices": [], "usage": _usage(generations)})
    yield Event(DONE)


def _message(head: dict[str, Any], index: int, text: str, finish: str | None, lists: Any) -> Event:
    choice = {"index": index, "text": text, "finish_reason": finish, "logprobs": lists}
    return Event({**head, "choices": [choice]})


def _head(number: int) -> dict[str, Any]:
    return {
        "id": f"cmpl-{number}",
        "object": "text_completion",
        "created": _CREATED,
        "model": MODEL,
    }


def _lists(pieces: list[Piece], top: int) -> dict[str, list[Any]]:
    tokens = [token.decode("utf-8", errors="replace") for piece in pieces for token in piece.tokens]
    offsets = [0, *itertools.accumulate(map(len, tokens))][: len(tokens)]
    return {
        "tokens": tokens,
        "token_logprobs": [LOGPROB] * len(tokens),
        "top_logprobs": [{token: LOGPROB} if top else {} for token in tokens],
        "text_offset": offsets,
    }


def _usage(generations: list[Generation]) -> dict[str, int]:
    prompts = {id(each.sampling.prompt): each.sampling.prompt for each in generations}
    return usage(" ".join(prompts.values()), generations)
