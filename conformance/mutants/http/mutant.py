"""A mutant of the right HTTP server: the one thing that it does wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.reply import Event, Reply

Change = Callable[[Ask, Reply], Reply | None]


@dataclass(frozen=True, slots=True)
class HttpMutant:
    """One broken rule.

    requirement: the row whose check must fail. story: the kind of bug it stands for, in one
    sentence. on_ask: changes the request before the server reads it (an option that is ignored).
    on_reply: changes the answer, or gives another. also: rows that the same fault breaks by
    necessity. scripted: whether the run is told that the model is the scripted one.
    """

    name: str
    requirement: str
    story: str
    on_ask: Callable[[Ask], None] | None = None
    on_reply: Change | None = None
    also: frozenset[str] = frozenset()
    scripted: bool = True


def each_event(change: Callable[[Event], Event | None], path: str = "") -> Change:
    """Change (or, with None, drop) every message of the streams of a path (empty: any)."""

    def on_reply(ask: Ask, reply: Reply) -> None:
        if reply.events is not None and path in {"", ask.path}:
            kept = (change(event) for event in reply.events)
            reply.events = (event for event in kept if event is not None)

    return on_reply


def all_events(change: Callable[[list[Event]], list[Event]], path: str = "") -> Change:
    """Change the messages of a stream as a list; the stream is no stream any more, which a
    mutant's check does not mind.
    """

    def on_reply(ask: Ask, reply: Reply) -> None:
        if reply.events is not None and path in {"", ask.path}:
            reply.events = iter(change(list(reply.events)))

    return on_reply


def bodies(change: Callable[[dict[str, Any]], None], path: str = "") -> Change:
    """Change the JSON body of every successful answer in one piece."""

    def on_reply(ask: Ask, reply: Reply) -> None:
        if reply.status == 200 and isinstance(reply.body, dict) and path in {"", ask.path}:
            change(reply.body)

    return on_reply


def both(first: Change, second: Change) -> Change:
    """Two changes of one answer."""

    def on_reply(ask: Ask, reply: Reply) -> Reply:
        reply = first(ask, reply) or reply
        return second(ask, reply) or reply

    return on_reply
