"""Faults of how an error inside a stream of a text API is told."""

from __future__ import annotations

from collections.abc import Callable

from conformance.mutants.http.chat import DONE
from conformance.mutants.http.mutant import Change, all_events, each_event
from conformance.mutants.http.reply import Event
from conformance.mutants.http.text.fault import TERMINATOR, TextFault


def _is_error(event: Event) -> bool:
    return isinstance(event.data, dict) and "error" in event.data


def _as_text(event: Event) -> Event:
    if _is_error(event):
        event.data = {"error": event.data["error"]["message"]}
    return event


def _after_an_error(change: Callable[[list[Event]], list[Event]]) -> Change:
    """Change the messages of streams with an error in them."""

    def one(events: list[Event]) -> list[Event]:
        return change(events) if any(map(_is_error, events)) else events

    return all_events(one)


def _swallowed(events: list[Event]) -> list[Event]:
    return [event for event in events if not _is_error(event)]


def _no_done(events: list[Event]) -> list[Event]:
    return [event for event in events if event.data != DONE]


def _goes_on(events: list[Event]) -> list[Event]:
    """The last piece of text comes once more, behind the error."""
    at = next(number for number, event in enumerate(events) if _is_error(event))
    return [*events[: at + 1], events[at - 1], *events[at + 1 :]]


def _second_response(events: list[Event]) -> list[Event]:
    """The handler of errors answers as if nothing had been sent."""
    return [
        Event("HTTP/1.1 500 Internal Server Error") if _is_error(event) else event
        for event in events
    ]


FAULTS = (
    TextFault(
        "error-swallowed",
        "stream_error",
        "The generation fails, and the stream just ends.",
        on_reply=_after_an_error(_swallowed),
        also=("finish_key",),
    ),
    TextFault(
        "stream-error-as-text",
        "stream_error",
        "An error inside a stream is a text where other errors are objects.",
        on_reply=each_event(_as_text),
    ),
    TextFault(
        "no-done-after-error",
        "stream_error",
        "The error leaves the loop that writes the end.",
        on_reply=_after_an_error(_no_done),
        also=(TERMINATOR,),
    ),
    TextFault(
        "text-after-error",
        "stream_error",
        "Another thread still writes when the error has been told.",
        on_reply=_after_an_error(_goes_on),
        also=("announced",),
    ),
    TextFault(
        "second-status-line",
        "stream_error",
        "The handler of errors begins a second response inside the first.",
        on_reply=_after_an_error(_second_response),
        also=("finish_key", "OE-HTTP-SSE-004"),
    ),
)
