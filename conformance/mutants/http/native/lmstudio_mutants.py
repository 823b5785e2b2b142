"""Mutants of LM Studio's native chat: one at least for each of their rules."""

from __future__ import annotations

from conformance.mutants.http.mutant import HttpMutant, all_events, bodies, each_event
from conformance.mutants.http.native import lmstudio
from conformance.mutants.http.native.changes import (
    Json,
    crashing,
    everywhere,
    failing,
    is_error,
    limit_off,
    values,
    wedged_by_leavers,
)
from conformance.mutants.http.reply import Event


def _no_instance(body: Json) -> None:
    body.pop("model_instance_id", None)


def _negative(value: Json) -> None:
    for holder in (value, value.get("result")):
        if isinstance(holder, dict) and "stats" in holder:
            holder["stats"]["input_tokens"] = -1


def _no_names(event: Event) -> Event:
    event.name = ""
    return event


def _no_end(event: Event) -> Event | None:
    return None if event.name == "prompt_processing.end" else event


def _end_twice(events: list[Event]) -> list[Event]:
    return [*events, events[-1]]


def _empty_result(value: Json) -> None:
    if value.get("type") == "chat.end":
        value["result"]["output"] = []


def _trimmed(value: Json) -> None:
    """Deltas and result alike."""
    if value.get("type") == "message.delta":
        value["content"] = value["content"].replace(" ", "")
    if value.get("type") == "chat.end":
        for item in value["result"]["output"]:
            item["content"] = item["content"].replace(" ", "")


def _no_chat_end(events: list[Event]) -> list[Event]:
    return events[:-1]


def _delta_after(events: list[Event]) -> list[Event]:
    delta = next(event for event in events if event.name == "message.delta")
    return [*events[:-1], delta, events[-1]]


def _error_text(event: Event) -> Event:
    if is_error(event):
        event.data["error"] = event.data["error"]["message"]
    return event


MUTANTS = (
    HttpMutant(
        "lmstudio-no-instance",
        "OE-HTTP-LMS-001",
        "An answer does not say which instance gave it.",
        on_reply=bodies(_no_instance, lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-negative-count",
        "OE-HTTP-LMS-002",
        "A count that is not known is -1.",
        on_reply=everywhere(_negative, lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-no-names",
        "OE-HTTP-LMS-003",
        "Events have no names.",
        on_reply=each_event(_no_names, lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-end-twice",
        "OE-HTTP-LMS-004",
        "chat.end comes twice.",
        on_reply=all_events(_end_twice, lmstudio.PATH),
        also=frozenset({"OE-HTTP-LMS-009"}),
    ),
    HttpMutant(
        "lmstudio-open-phase",
        "OE-HTTP-LMS-005",
        "A phase is not ended before the message begins.",
        on_reply=each_event(_no_end, lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-empty-result",
        "OE-HTTP-LMS-006",
        "The result of chat.end has none of what was said.",
        on_reply=values(_empty_result, lmstudio.PATH),
        also=frozenset({"OE-HTTP-LMS-008"}),
    ),
    HttpMutant(
        "lmstudio-limit-off",
        "OE-HTTP-LMS-007",
        "The limit lets three more tokens through.",
        on_ask=limit_off("max_output_tokens", ""),
    ),
    HttpMutant(
        "lmstudio-other-stream",
        "OE-HTTP-LMS-008",
        "A stream says something else than the same answer in one piece.",
        on_reply=values(_trimmed, lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-no-end-after-error",
        "OE-HTTP-LMS-009",
        "An error leaves the loop that writes the end.",
        on_reply=failing(_no_chat_end, lmstudio.PATH),
        also=frozenset({"OE-HTTP-LMS-004", "OE-HTTP-LMS-006"}),
    ),
    HttpMutant(
        "lmstudio-text-after-error",
        "OE-HTTP-LMS-009",
        "Another thread still writes when the error has been told.",
        on_reply=failing(_delta_after, lmstudio.PATH),
        also=frozenset({"OE-HTTP-LMS-005", "OE-HTTP-LMS-006"}),
    ),
    HttpMutant(
        "lmstudio-stream-error-as-text",
        "OE-HTTP-LMS-009",
        "An error inside a stream is a text where other errors are objects.",
        on_reply=each_event(_error_text, lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-wedged-by-leavers",
        "OE-HTTP-LMS-010",
        "A generation that nobody reads goes on, and everybody waits for it.",
        on_reply=wedged_by_leavers(lmstudio.PATH),
    ),
    HttpMutant(
        "lmstudio-oversize-crash",
        "OE-HTTP-LMS-011",
        "A prompt that does not fit is a server error.",
        on_reply=crashing(lmstudio.PATH),
    ),
)
