"""One text API as its mutants see it, and the changes that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import Change, HttpMutant, bodies, each_event
from conformance.mutants.http.reply import Event, Reply

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """One API. ids: the number of a row by what it is about. holder: the object of a choice that
    carries its text, in a stream and in one piece; field: the text's name in it.
    """

    path: str
    name: str
    group: str
    ids: Mapping[str, str]
    part: Callable[[Json], Json]
    whole: Callable[[Json], Json]
    field: str

    def id(self, about: str) -> str:
        """The row's id."""
        return f"{self.group}-{self.ids[about]}"

    def mutant(
        self,
        name: str,
        about: str,
        story: str,
        *,
        on_ask: Callable[[Json, Ask], None] | None = None,
        on_reply: Change | None = None,
        also: tuple[str, ...] = (),
    ) -> HttpMutant:
        """A mutant of this API alone."""
        return HttpMutant(
            f"{self.name}-{name}",
            self.id(about),
            story,
            on_ask=None if on_ask is None else asking(self.path, on_ask),
            on_reply=None if on_reply is None else on_path(self.path, on_reply),
            also=frozenset(
                each if each.startswith("OE-") else self.id(each)
                for each in also
                if each.startswith("OE-") or each in self.ids
            ),
        )

    def text(self, choice: Json) -> str:
        """Text of a choice of a stream."""
        return str(self.part(choice).get(self.field) or "")


def asking(path: str, change: Callable[[Json, Ask], None]) -> Callable[[Ask], None]:
    """Change the JSON of requests for one path."""

    def on_ask(ask: Ask) -> None:
        if ask.json is not None and ask.path == path:
            change(ask.json, ask)

    return on_ask


def on_path(path: str, change: Change) -> Change:
    """Change the answers of one path only."""

    def on_reply(ask: Ask, reply: Reply) -> Reply | None:
        return change(ask, reply) if ask.path == path else None

    return on_reply


def messages(change: Callable[[Json], None]) -> Change:
    """Change each JSON message of a stream; errors are none."""

    def one(event: Event) -> Event:
        if isinstance(event.data, dict) and "choices" in event.data:
            change(event.data)
        return event

    return each_event(one)


def choices(change: Callable[[Json], None]) -> Change:
    """Change each choice of a stream."""

    def one(value: Json) -> None:
        for choice in value["choices"]:
            change(choice)

    return messages(one)


def choices_in(event: Event) -> list[Json]:
    """The choices of a message; none of the terminator and of an error."""
    found: list[Json] = event.data.get("choices", []) if isinstance(event.data, dict) else []
    return found


def is_finish(event: Event) -> bool:
    """Whether a message ends a choice."""
    return any(choice["finish_reason"] is not None for choice in choices_in(event))


def finish(old: str, new: str, unless: str = "") -> Change:
    """Another finish_reason, in both forms; not in requests that have the field `unless`."""

    def swap(choice: Json) -> None:
        if choice.get("finish_reason") == old:
            choice["finish_reason"] = new

    def swap_all(body: Json) -> None:
        for choice in body["choices"]:
            swap(choice)

    parts, whole = choices(swap), bodies(swap_all)

    def on_reply(ask: Ask, reply: Reply) -> None:
        if not unless or unless not in (ask.json or {}):
            parts(ask, reply)
            whole(ask, reply)

    return on_reply
