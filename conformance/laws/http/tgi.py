"""The laws of Text Generation Inference's native routes: a token in each message of a stream."""

from __future__ import annotations

from typing import Any

from conformance.http.exchange import Exchange
from conformance.http.sse import parse_sse
from conformance.laws.http.law import Finding, Ruling, http_law
from conformance.laws.http.view import undisturbed
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.usage import SSE

CONTRACT = "tgi-native"
REASONS = frozenset({"length", "eos_token", "stop_sequence"})


def messages_of(exchange: Exchange) -> list[dict[str, Any]] | None:
    """The objects of a stream; None when there is none, or an error in it."""
    if exchange.status != 200 or exchange.media_type != SSE:
        return None
    values = [event.fields for event in parse_sse(exchange.body).events]
    found = [value for value in values if value is not None]
    return None if any("error" in value for value in found) else found


def whole_of(exchange: Exchange) -> dict[str, Any] | None:
    """The object of a successful answer in one piece."""
    wanted = exchange.ok and exchange.media_type != SSE and isinstance(exchange.json, dict)
    return exchange.json if wanted else None


def details_of(exchange: Exchange) -> dict[str, Any] | None:
    """What an answer tells of its end, wherever that stands."""
    messages = messages_of(exchange)
    holder = whole_of(exchange) if messages is None else (messages[-1] if messages else None)
    details = (holder or {}).get("details")
    return details if isinstance(details, dict) else None


def text_of(exchange: Exchange) -> str | None:
    """generated_text of an answer in either form."""
    messages = messages_of(exchange)
    holder = whole_of(exchange) if messages is None else (messages[-1] if messages else None)
    text = (holder or {}).get("generated_text")
    return text if isinstance(text, str) else None


@http_law("OE-HTTP-TGI-001", CONTRACT)
def whole(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """A text in one piece."""
    if exchange.status != 200 or exchange.media_type == SSE or not exchange.whole:
        return None
    value = whole_of(exchange)
    if value is None:
        return Finding("a JSON object", "something else")
    text = value.get("generated_text")
    return True if isinstance(text, str) else Finding("a text generated_text", "none")


@http_law("OE-HTTP-TGI-002", CONTRACT)
def tokens(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """A token in each message, counted."""
    messages = messages_of(exchange)
    if not messages:
        return None
    first = messages[0].get("index")
    for number, value in enumerate(messages):
        problem = _token_problem(value.get("token"))
        if problem is not None:
            return Finding("a token with id, text, logprob and special", problem, number)
        index = value.get("index")
        if not isinstance(index, int) or not isinstance(first, int) or index != first + number:
            return Finding("an index that grows by 1", "another", number)
    return True


def _token_problem(token: object) -> str | None:
    if not isinstance(token, dict):
        return "no token"
    kinds = {"id": int, "text": str, "logprob": int | float, "special": bool}
    wrong = [name for name, kind in kinds.items() if not isinstance(token.get(name), kind)]
    return f"a token without {wrong[0]}" if wrong else None


@http_law("OE-HTTP-TGI-003", CONTRACT)
def end(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """The whole text comes last."""
    messages = messages_of(exchange)
    if not messages or not undisturbed(exchange):
        return None
    for number, value in enumerate(messages[:-1]):
        if value.get("generated_text") is not None:
            return Finding("generated_text null before the end", "a text", number)
    if not isinstance(messages[-1].get("generated_text"), str):
        return Finding("a text as generated_text in the last message", "none", len(messages) - 1)
    more = len(parse_sse(exchange.body).events) - len(messages)
    return Finding("nothing but the messages", f"{more} more events") if more else True


@http_law("OE-HTTP-TGI-004", CONTRACT)
def reason(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """One of three reasons."""
    details = details_of(exchange)
    if details is None or not undisturbed(exchange):
        return None
    found = details.get("finish_reason")
    return True if found in REASONS else Finding(f"one of {len(REASONS)} reasons", f"{found!r:.40}")


@http_law("OE-HTTP-TGI-005", CONTRACT)
def made_up(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """The text is its tokens."""
    messages = messages_of(exchange)
    if not messages or not undisturbed(exchange):
        return None
    text = messages[-1].get("generated_text")
    parts = [value.get("token") for value in messages]
    if not isinstance(text, str) or not all(isinstance(part, dict) for part in parts):
        return None
    joined = "".join(part["text"] for part in parts if part and not part.get("special"))
    if joined == text:
        return True
    return Finding(f"the {len(joined)} characters of the tokens", f"other {len(text)} characters")


LAWS = (whole, tokens, end, reason, made_up)
