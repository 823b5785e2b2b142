"""Mutants of Ollama's native routes: one at least for each of their rules."""

from __future__ import annotations

from collections.abc import Callable

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import HttpMutant, bodies
from conformance.mutants.http.native import ollama
from conformance.mutants.http.native.changes import (
    Json,
    crashing,
    everywhere,
    failing,
    is_error,
    limit_off,
    swallowed,
    values,
    wedged_by_leavers,
)
from conformance.mutants.http.reply import Event, Reply, ndjson_bytes


def _native(ask: Ask) -> bool:
    return ask.path in {ollama.CHAT, ollama.GENERATE}


def _whole_by_default(ask: Ask) -> None:
    if ask.json is not None and _native(ask):
        ask.json.setdefault("stream", False)


def _joined_lines(ask: Ask, reply: Reply) -> None:
    if _native(ask):
        reply.encode = lambda event: ndjson_bytes(event).rstrip() + b" "


def _done_early(value: Json) -> None:
    if "done" in value:
        value["done"] = True
        value.setdefault("done_reason", "stop")
        value.setdefault("eval_count", 1)


def _no_time(value: Json) -> None:
    if "message" in value or "response" in value:
        value["created_at"] = "now"


def _set_reason(old: str, new: str) -> Callable[[Json], None]:
    def change(value: Json) -> None:
        if value.get("done_reason") == old:
            value["done_reason"] = new

    return change


def _seconds(value: Json) -> None:
    if "total_duration" in value:
        value["total_duration"] = 0.004


def _still_going(value: Json) -> None:
    if value.get("done") is True:
        value["done"] = False


def _other_end(value: Json) -> None:
    """Streams end for another reason than answers in one piece."""
    if value.get("done_reason") == "stop":
        value["done_reason"] = "length"


def _no_stops(ask: Ask) -> None:
    if ask.json is not None and _native(ask):
        (ask.json.get("options") or {}).pop("stop", None)


def _broken_character(value: Json) -> None:
    for holder in (value, value.get("message")):
        for name in ("response", "content"):
            if isinstance(holder, dict) and isinstance(holder.get(name), str):
                holder[name] = holder[name].replace("\U0001f600", "\ufffd\ufffd")


def _no_last_chunk(ask: Ask, reply: Reply) -> None:
    if _native(ask):
        reply.finish = False


def _nested_error(_: Ask, reply: Reply) -> None:
    if reply.status in {400, 404} and isinstance(reply.body, dict):
        reply.body = {"error": {"message": "no"}}


def _done_too(events: list[Event]) -> list[Event]:
    """The line that ends a text, behind the error."""
    last = {**events[0].data, "done": True, "done_reason": "stop", "eval_count": 1}
    return [*events, Event(last)]


def _error_objects(events: list[Event]) -> list[Event]:
    for event in filter(is_error, events):
        event.data = {"error": {"message": event.data["error"]}}
    return events


MUTANTS = (
    HttpMutant(
        "ollama-whole-by-default",
        "OE-HTTP-OLLAMA-001",
        "Without the field stream the answer comes in one piece.",
        on_ask=_whole_by_default,
    ),
    HttpMutant(
        "ollama-joined-lines",
        "OE-HTTP-OLLAMA-002",
        "Objects follow each other without a line feed.",
        on_reply=_joined_lines,
        also=frozenset({"OE-HTTP-OLLAMA-015"}),
    ),
    HttpMutant(
        "ollama-done-early",
        "OE-HTTP-OLLAMA-003",
        "Every line says done.",
        on_reply=values(_done_early),
    ),
    HttpMutant(
        "ollama-no-time",
        "OE-HTTP-OLLAMA-004",
        "created_at is no time.",
        on_reply=values(_no_time),
    ),
    HttpMutant(
        "ollama-eos-reason",
        "OE-HTTP-OLLAMA-005",
        "The reason at the end of a text is one of another API.",
        on_reply=everywhere(_set_reason("stop", "eos")),
        also=frozenset({"OE-HTTP-OLLAMA-010"}),
    ),
    HttpMutant(
        "ollama-seconds",
        "OE-HTTP-OLLAMA-006",
        "Durations are seconds instead of nanoseconds.",
        on_reply=everywhere(_seconds),
    ),
    HttpMutant(
        "ollama-never-done",
        "OE-HTTP-OLLAMA-007",
        "An answer in one piece says that it goes on.",
        on_reply=bodies(_still_going),
    ),
    HttpMutant(
        "ollama-stream-reason",
        "OE-HTTP-OLLAMA-008",
        "A stream ends for another reason than the same answer in one piece.",
        on_reply=values(_other_end),
        also=frozenset({"OE-HTTP-OLLAMA-010"}),
    ),
    HttpMutant(
        "ollama-limit-off",
        "OE-HTTP-OLLAMA-009",
        "The limit lets three more tokens through.",
        on_ask=limit_off("num_predict", "options"),
    ),
    HttpMutant(
        "ollama-natural-length",
        "OE-HTTP-OLLAMA-010",
        "A natural end is reported as a cut.",
        on_reply=everywhere(_set_reason("stop", "length")),
    ),
    HttpMutant(
        "ollama-no-stops",
        "OE-HTTP-OLLAMA-011",
        "Stop strings are ignored.",
        on_ask=_no_stops,
    ),
    HttpMutant(
        "ollama-half-characters",
        "OE-HTTP-OLLAMA-012",
        "Each token is decoded on its own.",
        on_reply=everywhere(_broken_character, ollama.CHAT, ollama.GENERATE),
    ),
    HttpMutant(
        "ollama-nested-error",
        "OE-HTTP-OLLAMA-013",
        "Errors have the envelope of another API.",
        on_reply=_nested_error,
    ),
    HttpMutant(
        "ollama-no-last-chunk",
        "OE-HTTP-OLLAMA-014",
        "The connection is closed without the last chunk, as after a crash.",
        on_reply=_no_last_chunk,
    ),
    HttpMutant(
        "ollama-error-swallowed",
        "OE-HTTP-OLLAMA-015",
        "The generation fails, and the stream just ends.",
        on_reply=failing(swallowed, ollama.CHAT, ollama.GENERATE),
        also=frozenset({"OE-HTTP-OLLAMA-003"}),
    ),
    HttpMutant(
        "ollama-done-after-error",
        "OE-HTTP-OLLAMA-015",
        "The line that ends a text is written after an error too.",
        on_reply=failing(_done_too, ollama.CHAT, ollama.GENERATE),
        also=frozenset({"OE-HTTP-OLLAMA-003"}),
    ),
    HttpMutant(
        "ollama-stream-error-object",
        "OE-HTTP-OLLAMA-015",
        "An error inside a stream has the envelope of another API.",
        on_reply=failing(_error_objects, ollama.CHAT, ollama.GENERATE),
    ),
    HttpMutant(
        "ollama-wedged-by-leavers",
        "OE-HTTP-OLLAMA-016",
        "A generation that nobody reads goes on, and everybody waits for it.",
        on_reply=wedged_by_leavers(ollama.CHAT, ollama.GENERATE),
    ),
    HttpMutant(
        "ollama-oversize-crash",
        "OE-HTTP-OLLAMA-017",
        "A prompt that does not fit is a server error.",
        on_reply=crashing(ollama.CHAT, ollama.GENERATE),
    ),
)
