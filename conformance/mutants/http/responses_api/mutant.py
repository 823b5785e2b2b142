"""How the mutants of Responses are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import Change, HttpMutant, each_event
from conformance.mutants.http.reply import Event
from conformance.mutants.http.responses import PATH
from conformance.mutants.http.shape import asking, on_path

Json = dict[str, Any]
ENDS = ("response.completed", "response.incomplete")
DELTA = "response.output_text.delta"


def mutant(
    name: str,
    number: str,
    story: str,
    *,
    on_ask: Callable[[Json, Ask], None] | None = None,
    on_reply: Change | None = None,
    also: tuple[str, ...] = (),
) -> HttpMutant:
    """A mutant of Responses alone. number: of its row; also: numbers of rows, or whole ids."""
    return HttpMutant(
        f"responses-{name}",
        f"OE-HTTP-RESP-{number}",
        story,
        on_ask=None if on_ask is None else asking(PATH, on_ask),
        on_reply=None if on_reply is None else on_path(PATH, on_reply),
        also=frozenset(each if each.startswith("OE-") else f"OE-HTTP-RESP-{each}" for each in also),
    )


def values(change: Callable[[Json], None]) -> Change:
    """Change the JSON of each event."""

    def one(event: Event) -> Event:
        if isinstance(event.data, dict):
            change(event.data)
        return event

    return each_event(one)


def renumbered(events: list[Event]) -> list[Event]:
    """The events in their order, numbered again."""
    for number, event in enumerate(events):
        event.data["sequence_number"] = number
    return events


def completed_event(events: list[Event]) -> list[Event]:
    """The name of the last event is always the same."""
    last = events[-1]
    last.name = last.data["type"] = "response.completed"
    return events
