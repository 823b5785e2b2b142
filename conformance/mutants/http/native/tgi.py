"""Text Generation Inference's routes as the right server answers them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.mutants.http.ask import CONTEXT_TOKENS, Ask, Fields
from conformance.mutants.http.generator import (
    LOGPROB,
    BrokenOutputError,
    Generation,
    Sampling,
    prompt_tokens,
)
from conformance.mutants.http.reply import Event, RefusedError, Reply, streamed

WHOLE, STREAM = "/generate", "/generate_stream"
_REASONS = {"stop": "eos_token", "length": "length"}


def generate(ask: Ask) -> Reply:
    """An answer in one piece."""
    return _answered(ask, stream=False)


def generate_stream(ask: Ask) -> Reply:
    """A stream."""
    return _answered(ask, stream=True)


def _answered(ask: Ask, *, stream: bool) -> Reply:
    try:
        generation = _generation(ask)
    except RefusedError as refused:
        return Reply(422, {"error": refused.problem, "error_type": "validation"})
    if stream:
        return streamed(_messages(generation))
    text = "".join(piece.text for piece in generation.pieces())
    return Reply(body={"generated_text": text, "details": _details(generation)})


def _generation(ask: Ask) -> Generation:
    fields = Fields(ask.json or {})
    chosen = Fields(fields.table("parameters"))
    limit = chosen.whole("max_new_tokens", 1, 2**31, 20)
    prompt = fields.text("inputs")
    if prompt_tokens(prompt) > CONTEXT_TOKENS:
        raise RefusedError(422, "inputs are longer than the context")
    return Generation(Sampling(prompt, limit, temperature=0.0))


def _details(generation: Generation) -> dict[str, Any]:
    return {
        "finish_reason": _REASONS[generation.finish],
        "generated_tokens": generation.completion_tokens,
        "seed": None,
        "prefill": [],
        "tokens": [],
    }


def _messages(generation: Generation) -> Iterator[Event]:
    """A message for each token; a natural end is a special token of its own."""
    texts, broken = _texts(generation)
    tokens = [(text, False) for text in texts]
    if generation.finish == "stop":
        tokens.append(("</s>", True))
    for number, (text, special) in enumerate(tokens, 1):
        last = number == len(tokens) and not broken
        yield Event(
            {
                "index": number,
                "token": {"id": number, "text": text, "logprob": LOGPROB, "special": special},
                "top_tokens": [],
                "generated_text": "".join(texts) if last else None,
                "details": _details(generation) if last else None,
            }
        )
    if broken:
        yield Event({"error": broken, "error_type": "generation"})


def _texts(generation: Generation) -> tuple[list[str], str]:
    """The texts of the tokens, and what broke in the middle of them; empty for nothing."""
    texts: list[str] = []
    try:
        for piece in generation.pieces():
            texts.append(piece.text)  # noqa: PERF401 - those before an error are kept
    except BrokenOutputError as error:
        return texts, str(error)
    return texts, ""
