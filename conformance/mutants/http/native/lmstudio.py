"""LM Studio's chat as the right server answers it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.mutants.http.ask import MODEL, Ask, Fields
from conformance.mutants.http.generator import (
    BrokenOutputError,
    Generation,
    Sampling,
    prompt_tokens,
)
from conformance.mutants.http.reply import Event, Reply, nested_error

PATH = "/api/v1/chat"


def chat(ask: Ask) -> Reply:
    """Answer a request. Raises RefusedError."""
    fields = Fields(ask.json or {})
    prompt = fields.text("input")
    limit = fields.whole("max_output_tokens", 1, 2**31, None)
    generation = Generation(Sampling(prompt, limit, temperature=0.0))
    if ask.stream:
        return Reply(events=_events(prompt, generation), content_type="text/event-stream")
    text = "".join(piece.text for piece in generation.pieces())
    return Reply(body=_result(prompt, generation, text))


def _result(prompt: str, generation: Generation, text: str) -> dict[str, Any]:
    return {
        "model_instance_id": MODEL,
        "output": [{"type": "message", "content": text}],
        "stats": {
            "input_tokens": prompt_tokens(prompt),
            "total_output_tokens": generation.completion_tokens,
            "reasoning_output_tokens": 0,
            "tokens_per_second": 100.5,
            "time_to_first_token_seconds": 0.01,
        },
    }


def _event(kind: str, **more: Any) -> Event:
    return Event({"type": kind, **more}, kind)


def _events(prompt: str, generation: Generation) -> Iterator[Event]:
    yield _event("chat.start", model_instance_id=MODEL)
    yield _event("prompt_processing.start")
    yield _event("prompt_processing.progress", progress=0.5)
    yield _event("prompt_processing.end")
    yield _event("message.start")
    said = ""
    try:
        for piece in generation.pieces():
            said += piece.text
            yield _event("message.delta", content=piece.text)
        yield _event("message.end")
    except BrokenOutputError as broken:
        yield _event("error", **nested_error(str(broken), "unknown"))
    yield _event("chat.end", result=_result(prompt, generation, said))
