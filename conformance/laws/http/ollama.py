"""The laws of Ollama's native routes: lines of JSON, of which the last one says that it is over."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from conformance.http.exchange import Exchange
from conformance.http.ndjson import NdjsonStream, parse_ndjson
from conformance.laws.http.framing import framed_end, route_of
from conformance.laws.http.law import Finding, Ruling, http_law
from conformance.laws.http.view import is_count, undisturbed
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.usage import NDJSON

CONTRACT = "ollama-native"
REASONS = frozenset({"stop", "length"})
# A request without a prompt only loads or unloads the model, and says so.
RESIDENCY = frozenset({"load", "unload"})
_DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
_COUNTS = ("prompt_eval_count", "eval_count")


def streamed(exchange: Exchange) -> bool:
    """Whether a stream was asked for: it is, unless the request says otherwise."""
    request = exchange.request.json
    return isinstance(request, dict) and request.get("stream", True) is True


def lines_of(exchange: Exchange) -> NdjsonStream | None:
    """The stream of a successful answer; None when there is none."""
    wanted = exchange.status == 200 and streamed(exchange)
    return parse_ndjson(exchange.body) if wanted and exchange.media_type == NDJSON else None


def whole_of(exchange: Exchange) -> dict[str, Any] | None:
    """The object of a successful answer in one piece."""
    value = exchange.json if exchange.ok and not streamed(exchange) else None
    return value if isinstance(value, dict) else None


def text_in(value: dict[str, Any]) -> Any:
    """The text of a line or an answer, on either route; None where there is none."""
    message = value.get("message")
    return message.get("content") if isinstance(message, dict) else value.get("response")


@http_law("OE-HTTP-OLLAMA-001", CONTRACT)
def by_default(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """A stream is the default and says what it is."""
    if exchange.status != 200 or not streamed(exchange):
        return None
    if exchange.media_type == NDJSON:
        return True
    return Finding(f"content type {NDJSON}", exchange.media_type or "no content type")


@http_law("OE-HTTP-OLLAMA-002", CONTRACT)
def lines(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """One object in each line."""
    stream = lines_of(exchange)
    if stream is None or not undisturbed(exchange):
        return None
    if stream.faults:
        return Finding("one JSON object in each line", stream.faults[0].problem)
    return Finding("a line feed at the end", "none") if stream.unfinished else True


@http_law("OE-HTTP-OLLAMA-003", CONTRACT)
def done(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """The end is one line, and nothing follows."""
    stream = lines_of(exchange)
    if stream is None or not stream.lines or not undisturbed(exchange):
        return None
    ends = [number for number, line in enumerate(stream.lines) if line.value.get("done") is True]
    errors = [number for number, line in enumerate(stream.lines) if "error" in line.value]
    last = len(stream.lines) - 1
    if errors:
        right = errors == [last] and not ends
        return True if right else Finding("the error as the last line, without done", "more lines")
    if ends == [last]:
        return True
    return Finding("done true in the last line only", f"done true in {len(ends)} lines", last)


@http_law("OE-HTTP-OLLAMA-004", CONTRACT)
def shape(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """Model, time and text of each line."""
    stream = lines_of(exchange)
    if stream is None:
        return None
    parts = [line.value for line in stream.lines if "error" not in line.value]
    for number, value in enumerate(parts):
        problem = _problem(value, chat="messages" in (exchange.request.json or {}))
        if problem is not None:
            return Finding("a model, a time and a text", problem, number)
    return True if parts else None


def _problem(value: dict[str, Any], *, chat: bool) -> str | None:
    if not isinstance(value.get("model"), str) or not value["model"]:
        return "no model"
    if not _is_time(value.get("created_at")):
        return "no time created_at"
    if not isinstance(text_in(value), str):
        return "no text"
    message = value.get("message")
    if chat != isinstance(message, dict):
        return "the text of the other route"
    if isinstance(message, dict) and message.get("role") != "assistant":
        return "another role than assistant"
    return None


def _is_time(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        # Go writes nanoseconds, which Python reads to the microsecond.
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _ends(exchange: Exchange) -> list[dict[str, Any]]:
    """The line or the answer that says done."""
    stream, value = lines_of(exchange), whole_of(exchange)
    values = [line.value for line in stream.lines] if stream is not None else [value or {}]
    return [each for each in values if each.get("done") is True]


@http_law("OE-HTTP-OLLAMA-005", CONTRACT)
def reason(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """Why a text is over."""
    ends = _ends(exchange)
    request = exchange.request.json or {}
    empty = not request.get("messages") and not request.get("prompt")
    allowed = REASONS | RESIDENCY if empty else REASONS
    for value in ends:
        if value.get("done_reason") not in allowed:
            return Finding("done_reason stop or length", repr(value.get("done_reason"))[:40])
    return True if ends else None


@http_law("OE-HTTP-OLLAMA-006", CONTRACT)
def counters(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """What the answer cost."""
    ends = [each for each in _ends(exchange) if each.get("done_reason") in REASONS]
    for value in ends:
        if "eval_count" not in value:
            return Finding("an eval_count", "none")
        for name in (*_COUNTS, *_DURATIONS):
            if name in value and not is_count(value[name]):
                return Finding(f"a whole number of at least 0 as {name}", "another value")
    return True if ends else None


@http_law("OE-HTTP-OLLAMA-007", CONTRACT)
def whole(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """One object, all in it."""
    if exchange.status != 200 or streamed(exchange) or not undisturbed(exchange):
        return None
    value = whole_of(exchange)
    if value is None or exchange.media_type != "application/json":
        return Finding("one JSON object", "something else")
    if value.get("done") is not True:
        return Finding("done true", "none")
    problem = _problem(value, chat="messages" in (exchange.request.json or {}))
    return True if problem is None else Finding("a model, a time and a text", problem)


@http_law("OE-HTTP-OLLAMA-014", CONTRACT)
def stream_end(exchange: Exchange, declared: HttpDeclared) -> Ruling:
    """The framing says where a stream ends."""
    route = route_of(exchange, declared)
    if route is None or lines_of(exchange) is None:
        return None
    return framed_end(exchange, route)


LAWS = (by_default, lines, done, shape, reason, counters, whole, stream_end)
