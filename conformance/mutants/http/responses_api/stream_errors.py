"""Faults of how an error inside a stream of Responses is told."""

from __future__ import annotations

from collections.abc import Callable

from conformance.mutants.http.mutant import Change, all_events, each_event
from conformance.mutants.http.reply import Event
from conformance.mutants.http.responses import FAILED
from conformance.mutants.http.responses_api.mutant import completed_event, mutant, renumbered


def _nested(event: Event) -> Event:
    """The error of the other APIs, in an event of this one."""
    if event.name == "error":
        value = event.data
        kept = {name: value[name] for name in ("type", "sequence_number")}
        event.data = kept | {"error": {name: value[name] for name in ("code", "message")}}
    return event


def _after_an_error(change: Callable[[list[Event]], list[Event]]) -> Change:
    """Change the events of streams that fail."""

    def one(events: list[Event]) -> list[Event]:
        return renumbered(change(events)) if events[-1].name == FAILED else events

    return all_events(one)


def _swallowed(events: list[Event]) -> list[Event]:
    return [event for event in events if event.name not in {"error", FAILED}]


def _untold(events: list[Event]) -> list[Event]:
    """response.failed alone, and its response does not say why."""
    events[-1].data["response"]["error"] = None
    return [event for event in events if event.name != "error"]


def _goes_on(events: list[Event]) -> list[Event]:
    """The last delta comes once more, behind the error."""
    at = next(number for number, event in enumerate(events) if event.name == "error")
    again = Event(dict(events[at - 1].data), events[at - 1].name)
    return [*events[: at + 1], again, *events[at + 1 :]]


MUTANTS = (
    mutant(
        "error-swallowed",
        "020",
        "The generation fails, and the stream just ends.",
        on_reply=_after_an_error(_swallowed),
        also=("008", "OE-HTTP-SSE-006"),
    ),
    mutant(
        "stream-error-nested",
        "020",
        "An error event has the envelope of another API.",
        on_reply=each_event(_nested),
    ),
    mutant(
        "failed-without-error",
        "020",
        "response.failed does not say why.",
        on_reply=_after_an_error(_untold),
    ),
    mutant(
        "completed-after-error",
        "020",
        "After an error the response is completed.",
        on_reply=_after_an_error(completed_event),
        also=("003", "009"),
    ),
    mutant(
        "delta-after-error",
        "020",
        "Another thread still writes when the error has been told.",
        on_reply=_after_an_error(_goes_on),
    ),
)
