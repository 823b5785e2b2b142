"""Faults of texts and ends: both forms alike, characters, and what is refused."""

from __future__ import annotations

from typing import Any

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import all_events, bodies, each_event
from conformance.mutants.http.reply import Event, Reply
from conformance.mutants.http.responses_api.mutant import (
    DELTA,
    ENDS,
    Json,
    completed_event,
    mutant,
    renumbered,
    values,
)


def _completed_status(events: list[Event]) -> list[Event]:
    events[-1].data["response"]["status"] = "completed"
    return events


def _loses_a_token(events: list[Event]) -> list[Event]:
    """A queue drops a piece; what the end says is made of the pieces that were sent."""
    deltas = [event for event in events if event.name == DELTA]
    if len(deltas) != 20:
        return events
    sent = "".join(event.data["delta"] for event in deltas if event is not deltas[15])
    events.remove(deltas[15])
    for event in events:
        _with_text(event.data, sent)
    return renumbered(events)


def _with_text(value: Any, text: str) -> None:
    """Put the text in the place of every whole one."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "text" and inner:
                value[name] = text
            else:
                _with_text(inner, text)
    elif isinstance(value, list):
        for inner in value:
            _with_text(inner, text)


def _miscounted(value: Json) -> None:
    if value["type"] in ENDS:
        usage = value["response"]["usage"]
        usage["output_tokens"] -= 1
        usage["total_tokens"] -= 1


def _own_end_incomplete(ask: Ask, reply: Reply) -> None:
    if "max_output_tokens" in (ask.json or {}):
        return

    def whole(value: Json) -> None:
        value["status"] = "incomplete"

    def at_the_end(event: Event) -> Event:
        if event.data["type"] == "response.completed":
            event.name = event.data["type"] = "response.incomplete"
            event.data["response"]["status"] = "incomplete"
        return event

    bodies(whole)(ask, reply)
    each_event(at_the_end)(ask, reply)


def _forgetful(json: Json, _: Ask) -> None:
    json.pop("previous_response_id", None)


def _half_characters(value: Json) -> None:
    """Everywhere alike, so that only the characters are wrong."""
    _replaced(value)


def _replaced(value: Any) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str):
                value[name] = inner.replace("\U0001f600", "\ufffd" * 4)
            else:
                _replaced(inner)
    elif isinstance(value, list):
        for inner in value:
            _replaced(inner)


def _no_streams(_: Ask, reply: Reply) -> Reply | None:
    if reply.events is None:
        return None
    error = {"message": "no streams", "type": "server_error", "param": None, "code": None}
    return Reply(500, {"error": error})


MUTANTS = (
    mutant(
        "stream-loses-a-token",
        "013",
        "A full queue drops a piece of the stream.",
        on_reply=all_events(_loses_a_token),
    ),
    mutant(
        "stream-miscounts",
        "014",
        "A stream does not count the end token.",
        on_reply=values(_miscounted),
    ),
    mutant(
        "end-is-incomplete",
        "015",
        "The model's own end is reported as a limit.",
        on_reply=_own_end_incomplete,
    ),
    mutant(
        "cut-stream-is-completed",
        "016",
        "The stream of a cut answer ends as completed, and says so of its status.",
        on_reply=all_events(lambda events: _completed_status(completed_event(events))),
        # A failed stream ends in the same way, and has no counts.
        also=("003", "013", "020"),
    ),
    mutant(
        "forgets-previous",
        "017",
        "A previous response that does not exist is ignored.",
        on_ask=_forgetful,
    ),
    mutant(
        "half-characters",
        "018",
        "Bytes of one character are decoded token by token.",
        on_reply=values(_half_characters),
        also=("013",),
    ),
    mutant("no-streams", "019", "Streams are broken altogether.", on_reply=_no_streams),
)
