"""Ollama's chat and generate as the right server answers them."""

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
from conformance.mutants.http.reply import Event, RefusedError, Reply, ndjson_bytes

CHAT, GENERATE = "/api/chat", "/api/generate"
NDJSON = "application/x-ndjson"
_CREATED = "2026-01-02T03:04:05.678901234Z"
_NANOSECONDS = 1_000_000


def chat(ask: Ask) -> Reply:
    """Answer a chat."""
    return _answered(ask, lambda text: {"message": {"role": "assistant", "content": text}})


def generate(ask: Ask) -> Reply:
    """Answer a prompt."""
    return _answered(ask, lambda text: {"response": text})


def _answered(ask: Ask, part: Any) -> Reply:
    try:
        prompt, generation = _generation(ask)
    except RefusedError as refused:
        return Reply(refused.status, {"error": refused.problem})
    if (ask.json or {}).get("stream", True):
        return Reply(
            events=_lines(prompt, generation, part), content_type=NDJSON, encode=ndjson_bytes
        )
    text = "".join(piece.text for piece in generation.pieces())
    return Reply(body=_line(part(text)) | _end(prompt, generation))


def _generation(ask: Ask) -> tuple[str, Generation]:
    fields = Fields(ask.json or {})
    if fields.text("model") != MODEL:
        raise RefusedError(404, "no such model")
    fields.flag("stream")
    options = Fields(fields.table("options"))
    if ask.path == CHAT:
        messages = fields.values.get("messages")
        if not isinstance(messages, list):
            raise RefusedError(400, "messages must be a list")
        prompt = "".join(str(message.get("content", "")) for message in messages)
    else:
        prompt = fields.text("prompt")
    limit = options.whole("num_predict", -2, 2**31, None)
    temperature = options.number("temperature", 0, 2, 0.8)
    sampling = Sampling(prompt, limit, options.stops(), temperature=temperature or 0.0)
    return prompt, Generation(sampling)


def _line(part: dict[str, Any], *, done: bool = False) -> dict[str, Any]:
    return {"model": MODEL, "created_at": _CREATED, **part, "done": done}


def _end(prompt: str, generation: Generation) -> dict[str, Any]:
    return {
        "done": True,
        "done_reason": generation.finish,
        "total_duration": 4 * _NANOSECONDS,
        "load_duration": _NANOSECONDS,
        "prompt_eval_count": prompt_tokens(prompt),
        "prompt_eval_duration": _NANOSECONDS,
        "eval_count": generation.completion_tokens,
        "eval_duration": 2 * _NANOSECONDS,
    }


def _lines(prompt: str, generation: Generation, part: Any) -> Iterator[Event]:
    try:
        for piece in generation.pieces():
            if piece.text:
                yield Event(_line(part(piece.text)))
    except BrokenOutputError as broken:
        yield Event({"error": str(broken)})
        return
    yield Event(_line(part("")) | _end(prompt, generation))
