"""The laws of LM Studio's native chat: named events, and a result that repeats what they said."""

from __future__ import annotations

from typing import Any

from conformance.http.exchange import Exchange
from conformance.http.sse import parse_sse
from conformance.laws.http.law import Finding, Ruling, http_law
from conformance.laws.http.view import is_count, undisturbed
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.usage import SSE

CONTRACT = "lmstudio-native"
_PHASES = frozenset({"model_load", "prompt_processing", "reasoning", "message"})
_COUNTS = ("input_tokens", "total_output_tokens")
_TIMES = ("tokens_per_second", "time_to_first_token_seconds")


def events_of(exchange: Exchange) -> list[tuple[str, dict[str, Any]]] | None:
    """Name and data of each event of a stream; None when there is none."""
    if exchange.status != 200 or exchange.media_type != SSE:
        return None
    events = parse_sse(exchange.body).events
    return [(event.name, value) for event in events if (value := event.fields) is not None]


def result_of(exchange: Exchange) -> dict[str, Any] | None:
    """The answer: the body of one in one piece, the result of chat.end in a stream."""
    events = events_of(exchange)
    if events is None:
        value = exchange.json if exchange.ok else None
    else:
        ends = [data.get("result") for _, data in events if data.get("type") == "chat.end"]
        value = ends[-1] if ends else None
    return value if isinstance(value, dict) else None


def message_of(result: dict[str, Any]) -> str:
    """The text of all messages of an answer."""
    items = result.get("output")
    texts = [
        item.get("content")
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, dict) and item.get("type") == "message"
    ]
    return "".join(text for text in texts if isinstance(text, str))


def output_tokens(result: dict[str, Any]) -> int | None:
    """The count of output tokens, when it is reported."""
    stats = result.get("stats")
    count = stats.get("total_output_tokens") if isinstance(stats, dict) else None
    return count if is_count(count) else None


@http_law("OE-HTTP-LMS-001", CONTRACT)
def whole(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """The shape of an answer in one piece."""
    if exchange.status != 200 or exchange.media_type == SSE or not exchange.whole:
        return None
    result = result_of(exchange)
    problem = "no JSON object" if result is None else _shape_problem(result)
    return True if problem is None else Finding("model_instance_id and output", problem)


def _shape_problem(result: dict[str, Any]) -> str | None:
    instance, items = result.get("model_instance_id"), result.get("output")
    if not isinstance(instance, str) or not instance:
        return "no model_instance_id"
    if not isinstance(items, list):
        return "no list output"
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            return "an item without a type"
        if item["type"] == "message" and not isinstance(item.get("content"), str):
            return "a message without a text"
    return None


@http_law("OE-HTTP-LMS-002", CONTRACT)
def stats(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """Counts and times."""
    result = result_of(exchange)
    if result is None or not undisturbed(exchange):
        return None
    found = result.get("stats")
    if not isinstance(found, dict):
        return Finding("stats", "none")
    for name in _COUNTS:
        if not is_count(found.get(name)):
            return Finding(f"a count {name}", "none")
    for name in _TIMES:
        value = found.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            return Finding(f"{name} of at least 0", "another value")
    thought = found.get("reasoning_output_tokens", 0)
    if not is_count(thought) or thought > found["total_output_tokens"]:
        return Finding("no more reasoning tokens than output tokens", "more")
    return True


@http_law("OE-HTTP-LMS-003", CONTRACT)
def names(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """Two names, one type."""
    events = events_of(exchange)
    for number, (name, data) in enumerate(events or ()):
        if not name or data.get("type") != name:
            return Finding("a name that is the type in the data", "none, or another", number)
    return True if events else None


@http_law("OE-HTTP-LMS-004", CONTRACT)
def ends(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """How a stream begins and ends."""
    events = events_of(exchange)
    if not events or not undisturbed(exchange):
        return None
    types = [str(data.get("type")) for _, data in events]
    for kind, place in (("chat.start", 0), ("chat.end", len(types) - 1)):
        if [number for number, each in enumerate(types) if each == kind] != [place]:
            where = "first" if place == 0 else "last"
            return Finding(f"{kind} as the {where} event, once", f"{types.count(kind)} times")
    return True


@http_law("OE-HTTP-LMS-005", CONTRACT)
def phases(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """One phase after the other."""
    events = events_of(exchange)
    if not events or not undisturbed(exchange):
        return None
    running = ""
    for number, (name, data) in enumerate(events):
        phase, dot, step = str(data.get("type", name)).rpartition(".")
        if not dot or phase not in _PHASES:
            # An error ends whatever was going on.
            running = "" if data.get("type") == "error" else running
            continue
        if (step == "start") == bool(running) or (step != "start" and phase != running):
            return Finding(f"a phase {phase} that has begun once", f"{phase}.{step}", number)
        running = "" if step == "end" else phase
    return Finding("an end of each phase", f"none of {running}") if running else True


@http_law("OE-HTTP-LMS-006", CONTRACT)
def result(exchange: Exchange, _: HttpDeclared) -> Ruling:
    """The end repeats the deltas."""
    events = events_of(exchange)
    if not events or not undisturbed(exchange):
        return None
    found = result_of(exchange)
    problem = "no result" if found is None else _shape_problem(found)
    if found is None or problem is not None:
        return Finding("a result with model_instance_id and output", str(problem))
    deltas = [data.get("content") for _, data in events if data.get("type") == "message.delta"]
    said = "".join(text for text in deltas if isinstance(text, str))
    if message_of(found) == said:
        return True
    actual = f"other {len(message_of(found))} characters"
    return Finding(f"the {len(said)} characters of the deltas", actual)


LAWS = (whole, stats, names, ends, phases, result)
