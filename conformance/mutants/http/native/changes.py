"""Changes that mutants of several native routes are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import Change, all_events, bodies, each_event
from conformance.mutants.http.reply import Event, Reply

Json = dict[str, Any]
# Hundreds of tokens: only a stream which is to last asks for so many.
_LONG = re.compile(rb":\s*[1-9][0-9]{2,}\b")
# More than any prompt but those that are to be too long.
_LARGE_BYTES = 4096


def values(change: Callable[[Json], None], path: str = "") -> Change:
    """Change the value of each message."""

    def one(event: Event) -> Event:
        change(event.data)
        return event

    return each_event(one, path)


def everywhere(change: Callable[[Json], None], *paths: str) -> Change:
    """Change each value of streams and the bodies of answers in one piece."""
    found: list[Change] = [values(change, path) for path in paths or ("",)]
    found += [bodies(change, path) for path in paths or ("",)]

    def on_reply(ask: Ask, reply: Reply) -> None:
        for each in found:
            each(ask, reply)

    return on_reply


def limit_off(name: str, holder: str) -> Callable[[Ask], None]:
    """The limit is off by three."""

    def on_ask(ask: Ask) -> None:
        found = (ask.json or {}).get(holder) if holder else ask.json
        if isinstance(found, dict) and name in found:
            found[name] += 3

    return on_ask


def failing(change: Callable[[list[Event]], list[Event]], *paths: str) -> Change:
    """Change the messages of streams in which an error is told."""

    def one(events: list[Event]) -> list[Event]:
        return change(events) if any(map(is_error, events)) else events

    found = [all_events(one, path) for path in paths]

    def on_reply(ask: Ask, reply: Reply) -> None:
        for each in found:
            each(ask, reply)

    return on_reply


def is_error(event: Event) -> bool:
    """Whether a message tells of an error."""
    return isinstance(event.data, dict) and "error" in event.data


def swallowed(events: list[Event]) -> list[Event]:
    """Nothing is told."""
    return [event for event in events if not is_error(event)]


def wedged_by_leavers(*paths: str) -> Change:
    """The thread that serves the routes stays with long streams, also those that were left, until
    the next client has given up too.
    """

    def on_reply(ask: Ask, _: Reply) -> Reply | None:
        # A request whose client left before it was whole is none.
        if ask.path not in paths or ask.json is None:
            return None
        if _LONG.search(ask.body):
            ask.state["left"] = True
            return None
        return Reply(stall=True) if ask.state.pop("left", False) else None

    return on_reply


def crashing(*paths: str) -> Change:
    """A prompt that does not fit is an exception."""

    def on_reply(ask: Ask, _: Reply) -> Reply | None:
        crashes = ask.path in paths and len(ask.body) > _LARGE_BYTES
        return Reply(500, {"error": "an exception"}) if crashes else None

    return on_reply
