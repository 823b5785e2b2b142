"""The laws of Chat Completions."""

from __future__ import annotations

from conformance.http.exchange import Exchange
from conformance.laws.http import openai
from conformance.laws.http.law import Finding, Ruling
from conformance.laws.http.shared import law_of
from conformance.laws.http.view import CHAT, Dialect, answer_of, choices_of, stream_of


def roles(exchange: Exchange, dialect: Dialect) -> Ruling:  # noqa: ARG001
    """The assistant speaks, and says so first."""
    value = answer_of(exchange)
    if value is not None:
        for choice in choices_of(value):
            message = choice.get("message")
            role = message.get("role") if isinstance(message, dict) else None
            if role != "assistant":
                return Finding("the role assistant", repr(role)[:40])
        return True if choices_of(value) else None
    stream = stream_of(exchange)
    if stream is None or not stream.indices:
        return None
    for index in stream.indices:
        for place, (number, choice) in enumerate(stream.of(index)):
            delta = choice.get("delta")
            role = delta.get("role") if isinstance(delta, dict) else None
            if role != "assistant" and (place == 0 or role is not None):
                where = "first delta" if place == 0 else "later delta"
                return Finding("the role assistant", f"{role!r:.40} in the {where}", number)
    return True


def content_key(exchange: Exchange, dialect: Dialect) -> Ruling:  # noqa: ARG001
    """A message has its content, be it null."""
    value = answer_of(exchange)
    if value is None or not choices_of(value):
        return None
    for choice in choices_of(value):
        message = choice.get("message")
        if not isinstance(message, dict) or "content" not in message:
            return Finding("the key content", "none")
        if not isinstance(message["content"], str | None):
            return Finding("content that is text or null", type(message["content"]).__name__)
    return True


LAWS = tuple(
    law_of(requirement, rule, CHAT)
    for requirement, rule in (
        ("OE-HTTP-CHAT-001", openai.unary_shape),
        ("OE-HTTP-CHAT-002", openai.chunk_shape),
        ("OE-HTTP-CHAT-003", roles),
        ("OE-HTTP-CHAT-004", openai.finish_key),
        ("OE-HTTP-CHAT-005", openai.finish_value),
        ("OE-HTTP-CHAT-006", openai.after_finish),
        ("OE-HTTP-CHAT-007", openai.terminated),
        ("OE-HTTP-CHAT-008", openai.usage_asked),
        ("OE-HTTP-CHAT-009", openai.usage_unasked),
        ("OE-HTTP-CHAT-010", openai.unary_usage),
        ("OE-HTTP-CHAT-025", openai.logprobs_unasked),
        ("OE-HTTP-CHAT-032", openai.announced),
        ("OE-HTTP-CHAT-033", content_key),
    )
)
