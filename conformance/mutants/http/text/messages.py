"""Faults of the messages of text APIs: their objects, finish reasons and [DONE]."""

from __future__ import annotations

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.chat import DONE
from conformance.mutants.http.mutant import all_events, bodies, each_event
from conformance.mutants.http.reply import Event
from conformance.mutants.http.shape import Json, choices, choices_in, finish, is_finish, messages
from conformance.mutants.http.text.changes import finish_early
from conformance.mutants.http.text.fault import ENDS, EVERYWHERE, TERMINATOR, TextFault


def _object(value: Json) -> None:
    value["object"] = "list"


def _streams_unless_told(json: Json, _: Ask) -> None:
    json.setdefault("stream", True)


def _created(value: Json) -> None:
    value["created"] = "now"


def _new_ids(events: list[Event]) -> list[Event]:
    for number, event in enumerate(events):
        if choices_in(event):
            event.data["id"] += f"-{number}"
    return events


def _no_finish_key(choice: Json) -> None:
    if choice["finish_reason"] is None:
        del choice["finish_reason"]


def _empty_finish(choice: Json) -> None:
    if choice["finish_reason"] is None:
        choice["finish_reason"] = ""


def _finish_twice(events: list[Event]) -> list[Event]:
    return [again for event in events for again in ([event] * (2 if is_finish(event) else 1))]


def _not_done(event: Event) -> Event | None:
    return None if event.data == DONE else event


def _done_twice(events: list[Event]) -> list[Event]:
    return [*events, Event(DONE)]


FAULTS = (
    TextFault(
        "streams-unless-told",
        "one_piece",
        "A request that does not say stream gets one.",
        on_ask=_streams_unless_told,
    ),
    TextFault(
        "object", "unary", "An answer calls itself by another name.", on_reply=bodies(_object)
    ),
    TextFault("created", "unary", "The time of creation is a text.", on_reply=bodies(_created)),
    TextFault(
        "chunk-object",
        "chunk",
        "Messages of a stream call themselves by another name.",
        on_reply=messages(_object),
    ),
    TextFault(
        "chunk-ids",
        "chunk",
        "Each message of a stream gets an id of its own.",
        on_reply=all_events(_new_ids),
    ),
    TextFault(
        "no-finish-key",
        "finish_key",
        "Messages before the last leave finish_reason out.",
        on_reply=choices(_no_finish_key),
    ),
    TextFault(
        "empty-finish",
        "finish_key",
        "finish_reason is an empty text until the end.",
        on_reply=choices(_empty_finish),
        also=EVERYWHERE,
    ),
    TextFault(
        "finish-twice",
        "finish_key",
        "The last message is sent twice.",
        on_reply=all_events(_finish_twice),
    ),
    TextFault(
        "finish-eos",
        "finish_value",
        "The end token's name is the reason.",
        on_reply=finish("stop", "eos"),
        also=ENDS,
    ),
    TextFault(
        "finish-early",
        "after_finish",
        "The reason overtakes the last text.",
        change=finish_early,
    ),
    TextFault(
        "no-done",
        "done",
        "A stream ends without [DONE].",
        on_reply=each_event(_not_done),
        also=("stream_error", TERMINATOR),
    ),
    TextFault(
        "done-twice",
        "done",
        "[DONE] is sent by two layers.",
        on_reply=all_events(_done_twice),
        also=("stream_error",),
    ),
)
