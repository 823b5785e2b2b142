"""Mutants of Responses: one for each of its rules, some with two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import Change, HttpMutant, all_events, bodies, each_event
from conformance.mutants.http.reply import Event, Reply
from conformance.mutants.http.responses import PATH
from conformance.mutants.http.shape import asking, on_path

Json = dict[str, Any]
_ENDS = ("response.completed", "response.incomplete")
_DELTA = "response.output_text.delta"


def _mutant(
    name: str,
    number: str,
    story: str,
    *,
    on_ask: Callable[[Json, Ask], None] | None = None,
    on_reply: Change | None = None,
    also: tuple[str, ...] = (),
) -> HttpMutant:
    return HttpMutant(
        f"responses-{name}",
        f"OE-HTTP-RESP-{number}",
        story,
        on_ask=None if on_ask is None else asking(PATH, on_ask),
        on_reply=None if on_reply is None else on_path(PATH, on_reply),
        also=frozenset(each if each.startswith("OE-") else f"OE-HTTP-RESP-{each}" for each in also),
    )


def _values(change: Callable[[Json], None]) -> Change:
    """Change the JSON of each event."""

    def one(event: Event) -> Event:
        if isinstance(event.data, dict):
            change(event.data)
        return event

    return each_event(one)


def _object(value: Json) -> None:
    value["object"] = "chat.completion"


def _no_created(value: Json) -> None:
    del value["created_at"]


def _status(value: Json) -> None:
    value["status"] = "done"


def _total(value: Json) -> None:
    value["usage"]["total_tokens"] -= 1


def _no_usage_at_the_end(value: Json) -> None:
    if value["type"] in _ENDS:
        del value["response"]["usage"]


def _complete(value: Json) -> None:
    value |= {"status": "completed", "incomplete_details": None}


def _no_reason(value: Json) -> None:
    value["incomplete_details"] = None


def _unnamed(event: Event) -> Event:
    event.name = ""
    return event


def _other_type(event: Event) -> Event:
    if event.name == _DELTA:
        event.name = "response.text.delta"
    return event


def _unnumbered(value: Json) -> None:
    del value["sequence_number"]


def _numbered_by_kind(events: list[Event]) -> list[Event]:
    for event in events:
        if event.name != _DELTA:
            event.data["sequence_number"] = 0
    return events


def _end_first(events: list[Event]) -> list[Event]:
    """Two tasks write to one stream: the end overtakes the beginning."""
    events[0].data, events[1].data = events[1].data, events[0].data
    events[0].name, events[1].name = events[1].name, events[0].name
    return _renumbered(events)


def _no_part(events: list[Event]) -> list[Event]:
    kept = [event for event in events if event.name != "response.content_part.added"]
    return _renumbered(kept)


def _item_left_open(events: list[Event]) -> list[Event]:
    kept = [event for event in events if event.name != "response.output_item.done"]
    return _renumbered(kept)


def _renumbered(events: list[Event]) -> list[Event]:
    for number, event in enumerate(events):
        event.data["sequence_number"] = number
    return events


def _done(events: list[Event]) -> list[Event]:
    return [*events, Event("[DONE]")]


def _no_end(events: list[Event]) -> list[Event]:
    return events[:-1]


def _completed_event(events: list[Event]) -> list[Event]:
    """The name of the last event is always the same."""
    last = events[-1]
    last.name = last.data["type"] = "response.completed"
    return events


def _completed_status(events: list[Event]) -> list[Event]:
    events[-1].data["response"]["status"] = "completed"
    return events


def _other_text(value: Json) -> None:
    if value["type"] == "response.output_text.done":
        value["text"] = value["text"].strip() + " "


def _no_final_text(value: Json) -> None:
    if value["type"] in _ENDS:
        for item in value["response"]["output"]:
            for part in item["content"]:
                part["text"] = part["text"][:3]


def _no_indices(value: Json) -> None:
    value.pop("output_index", None)
    value.pop("content_index", None)


def _new_item_ids(events: list[Event]) -> list[Event]:
    for number, event in enumerate(events):
        if "item_id" in event.data:
            event.data["item_id"] += f"_{number}"
    return events


def _bare_created(value: Json) -> None:
    if value["type"] == "response.created":
        value["response"] = {"id": value["response"]["id"], "object": "response"}


def _new_id_at_the_end(value: Json) -> None:
    if value["type"] in _ENDS:
        value["response"] = {**value["response"], "id": "resp_other"}


def _loses_a_token(events: list[Event]) -> list[Event]:
    """A queue drops a piece; what the end says is made of the pieces that were sent."""
    deltas = [event for event in events if event.name == _DELTA]
    if len(deltas) != 20:
        return events
    sent = "".join(event.data["delta"] for event in deltas if event is not deltas[15])
    events.remove(deltas[15])
    for event in events:
        _with_text(event.data, sent)
    return _renumbered(events)


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
    if value["type"] in _ENDS:
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
    _mutant("object", "001", "The object is that of chat.", on_reply=bodies(_object)),
    _mutant("no-created-at", "001", "The time is missing.", on_reply=bodies(_no_created)),
    _mutant(
        "status-done",
        "002",
        "The status is a word of the server's own.",
        on_reply=bodies(_status),
        also=("004", "013", "015"),
    ),
    _mutant("total", "003", "The total does not add up.", on_reply=bodies(_total)),
    _mutant(
        "no-usage-in-streams",
        "003",
        "The last event carries no usage.",
        on_reply=_values(_no_usage_at_the_end),
        also=("OE-HTTP-SSE-007",),
    ),
    _mutant(
        "cut-is-completed",
        "004",
        "A cut answer in one piece is called completed.",
        on_reply=bodies(_complete),
        also=("013",),
    ),
    _mutant(
        "no-reason", "004", "An incomplete answer does not say why.", on_reply=bodies(_no_reason)
    ),
    _mutant("unnamed", "005", "Events have no names.", on_reply=each_event(_unnamed)),
    _mutant(
        "two-names",
        "005",
        "An event's name is not its type.",
        on_reply=each_event(_other_type),
    ),
    _mutant("unnumbered", "006", "Events are not numbered.", on_reply=_values(_unnumbered)),
    _mutant(
        "numbered-by-kind",
        "006",
        "Only deltas are numbered.",
        on_reply=all_events(_numbered_by_kind),
    ),
    _mutant(
        "created-late",
        "007",
        "response.in_progress overtakes response.created.",
        on_reply=all_events(_end_first),
    ),
    _mutant("no-part", "007", "Deltas belong to no part.", on_reply=all_events(_no_part)),
    _mutant(
        "item-left-open", "007", "An item is never closed.", on_reply=all_events(_item_left_open)
    ),
    _mutant(
        "done",
        "008",
        "[DONE] is sent as for chat.",
        on_reply=all_events(_done),
        also=("OE-HTTP-SSE-006",),
    ),
    _mutant(
        "no-end",
        "008",
        "The stream just stops.",
        on_reply=all_events(_no_end),
        also=("019", "OE-HTTP-SSE-006"),
    ),
    _mutant(
        "always-completed",
        "009",
        "The last event has one name, whatever the status.",
        on_reply=all_events(_completed_event),
        also=("016",),
    ),
    _mutant(
        "other-text",
        "010",
        "The text at the end of a part is not that of its deltas.",
        on_reply=_values(_other_text),
    ),
    _mutant(
        "short-final-text",
        "010",
        "The last event carries a beginning of the text.",
        on_reply=_values(_no_final_text),
    ),
    _mutant("no-indices", "011", "Events do not say where.", on_reply=_values(_no_indices)),
    _mutant(
        "item-ids",
        "011",
        "Each event gives its item another id.",
        on_reply=all_events(_new_item_ids),
    ),
    _mutant(
        "bare-created",
        "012",
        "response.created has an id and nothing else.",
        on_reply=_values(_bare_created),
    ),
    _mutant(
        "new-id-at-the-end",
        "012",
        "The last event is about another response.",
        on_reply=_values(_new_id_at_the_end),
    ),
    _mutant(
        "stream-loses-a-token",
        "013",
        "A full queue drops a piece of the stream.",
        on_reply=all_events(_loses_a_token),
    ),
    _mutant(
        "stream-miscounts",
        "014",
        "A stream does not count the end token.",
        on_reply=_values(_miscounted),
    ),
    _mutant(
        "end-is-incomplete",
        "015",
        "The model's own end is reported as a limit.",
        on_reply=_own_end_incomplete,
    ),
    _mutant(
        "cut-stream-is-completed",
        "016",
        "The stream of a cut answer ends as completed, and says so of its status.",
        on_reply=all_events(lambda events: _completed_status(_completed_event(events))),
        also=("013",),
    ),
    _mutant(
        "forgets-previous",
        "017",
        "A previous response that does not exist is ignored.",
        on_ask=_forgetful,
    ),
    _mutant(
        "half-characters",
        "018",
        "Bytes of one character are decoded token by token.",
        on_reply=_values(_half_characters),
        also=("013",),
    ),
    _mutant("no-streams", "019", "Streams are broken altogether.", on_reply=_no_streams),
)
