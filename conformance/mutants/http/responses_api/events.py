"""Faults of the events of a stream: names, numbers, order, end and what they are about."""

from __future__ import annotations

from conformance.mutants.http.mutant import all_events, each_event
from conformance.mutants.http.reply import Event
from conformance.mutants.http.responses_api.mutant import (
    DELTA,
    ENDS,
    Json,
    completed_event,
    mutant,
    renumbered,
    values,
)


def _unnamed(event: Event) -> Event:
    event.name = ""
    return event


def _other_type(event: Event) -> Event:
    if event.name == DELTA:
        event.name = "response.text.delta"
    return event


def _unnumbered(value: Json) -> None:
    del value["sequence_number"]


def _numbered_by_kind(events: list[Event]) -> list[Event]:
    for event in events:
        if event.name != DELTA:
            event.data["sequence_number"] = 0
    return events


def _end_first(events: list[Event]) -> list[Event]:
    """Two tasks write to one stream: the end overtakes the beginning."""
    events[0].data, events[1].data = events[1].data, events[0].data
    events[0].name, events[1].name = events[1].name, events[0].name
    return renumbered(events)


def _no_part(events: list[Event]) -> list[Event]:
    kept = [event for event in events if event.name != "response.content_part.added"]
    return renumbered(kept)


def _item_left_open(events: list[Event]) -> list[Event]:
    kept = [event for event in events if event.name != "response.output_item.done"]
    return renumbered(kept)


def _done(events: list[Event]) -> list[Event]:
    return [*events, Event("[DONE]")]


def _no_end(events: list[Event]) -> list[Event]:
    return events[:-1]


def _other_text(value: Json) -> None:
    if value["type"] == "response.output_text.done":
        value["text"] = value["text"].strip() + " "


def _no_final_text(value: Json) -> None:
    if value["type"] in ENDS:
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
    if value["type"] in ENDS:
        value["response"] = {**value["response"], "id": "resp_other"}


MUTANTS = (
    mutant("unnamed", "005", "Events have no names.", on_reply=each_event(_unnamed)),
    mutant(
        "two-names",
        "005",
        "An event's name is not its type.",
        on_reply=each_event(_other_type),
    ),
    mutant("unnumbered", "006", "Events are not numbered.", on_reply=values(_unnumbered)),
    mutant(
        "numbered-by-kind",
        "006",
        "Only deltas are numbered.",
        on_reply=all_events(_numbered_by_kind),
    ),
    mutant(
        "created-late",
        "007",
        "response.in_progress overtakes response.created.",
        on_reply=all_events(_end_first),
    ),
    mutant("no-part", "007", "Deltas belong to no part.", on_reply=all_events(_no_part)),
    mutant(
        "item-left-open", "007", "An item is never closed.", on_reply=all_events(_item_left_open)
    ),
    mutant(
        "done",
        "008",
        "[DONE] is sent as for chat.",
        on_reply=all_events(_done),
        also=("020", "OE-HTTP-SSE-006"),
    ),
    mutant(
        "no-end",
        "008",
        "The stream just stops.",
        on_reply=all_events(_no_end),
        also=("019", "020", "OE-HTTP-SSE-006"),
    ),
    mutant(
        "always-completed",
        "009",
        "The last event has one name, whatever the status.",
        on_reply=all_events(completed_event),
        also=("016", "020"),
    ),
    mutant(
        "other-text",
        "010",
        "The text at the end of a part is not that of its deltas.",
        on_reply=values(_other_text),
    ),
    mutant(
        "short-final-text",
        "010",
        "The last event carries a beginning of the text.",
        on_reply=values(_no_final_text),
    ),
    mutant("no-indices", "011", "Events do not say where.", on_reply=values(_no_indices)),
    mutant(
        "item-ids",
        "011",
        "Each event gives its item another id.",
        on_reply=all_events(_new_item_ids),
    ),
    mutant(
        "bare-created",
        "012",
        "response.created has an id and nothing else.",
        on_reply=values(_bare_created),
    ),
    mutant(
        "new-id-at-the-end",
        "012",
        "The last event is about another response.",
        on_reply=values(_new_id_at_the_end),
    ),
)
