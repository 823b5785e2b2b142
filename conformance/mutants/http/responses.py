"""Responses of the right server, for a text as input."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from conformance.mutants.http.ask import CONTEXT_TOKENS, MODEL, Ask, Fields
from conformance.mutants.http.generator import (
    BrokenOutputError,
    Generation,
    Sampling,
    prompt_tokens,
)
from conformance.mutants.http.reply import Event, RefusedError, Reply, streamed

PATH = "/v1/responses"
FAILED = "response.failed"
_CREATED = 1_700_000_000
_numbers = itertools.count(1)


def responses(ask: Ask) -> Reply:
    """Answer a request. Raises RefusedError."""
    fields = Fields(ask.json or {})
    fields.common()
    prompt = fields.text("input")
    if prompt_tokens(prompt) > CONTEXT_TOKENS:
        raise RefusedError(400, "the input is longer than the context")
    if fields.text("previous_response_id", ""):
        raise RefusedError(404, "no such response", "not_found_error")
    limit = fields.whole("max_output_tokens", 1, 2**31, None)
    temperature = float(fields.values.get("temperature", 1.0) or 0.0)
    generation = Generation(Sampling(prompt, limit, temperature=temperature))
    number = next(_numbers)
    if ask.stream:
        return streamed(_numbered(_told(number, _stream(number, prompt, generation))))
    text = "".join(piece.text for piece in generation.pieces())
    return Reply(body=_finished(number, prompt, generation, text))


def _numbered(events: Iterator[dict[str, Any]]) -> Iterator[Event]:
    for number, value in enumerate(events):
        yield Event(value | {"sequence_number": number}, value["type"])


def _told(number: int, events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A stream that tells of an error when one comes up in it, and ends as failed."""
    try:
        yield from events
    except BrokenOutputError as broken:
        error = {"code": "server_error", "message": str(broken)}
        yield {"type": "error", **error, "param": None}
        yield {"type": FAILED, "response": _response(number, "failed") | {"error": error}}


def _stream(number: int, prompt: str, generation: Generation) -> Iterator[dict[str, Any]]:
    begun = _response(number, "in_progress")
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    item = _item(number, "in_progress", [])
    at = {"output_index": 0}
    yield {"type": "response.output_item.added", **at, "item": item}
    inside = {**at, "content_index": 0, "item_id": item["id"]}
    yield {"type": "response.content_part.added", **inside, "part": _part("")}
    text = ""
    for piece in generation.pieces():
        text += piece.text
        yield {"type": "response.output_text.delta", **inside, "delta": piece.text}
    yield {"type": "response.output_text.done", **inside, "text": text}
    yield {"type": "response.content_part.done", **inside, "part": _part(text)}
    finished = _finished(number, prompt, generation, text)
    yield {"type": "response.output_item.done", **at, "item": finished["output"][0]}
    yield {"type": f"response.{finished['status']}", "response": finished}


def _finished(number: int, prompt: str, generation: Generation, text: str) -> dict[str, Any]:
    cut = generation.finish == "length"
    status = "incomplete" if cut else "completed"
    asked, answered = prompt_tokens(prompt), generation.completion_tokens
    return _response(number, status) | {
        "output": [_item(number, status, [_part(text)])],
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "usage": {
            "input_tokens": asked,
            "output_tokens": answered,
            "total_tokens": asked + answered,
        },
    }


def _response(number: int, status: str) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": _CREATED,
        "model": MODEL,
        "status": status,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "usage": None,
    }


def _item(number: int, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}
