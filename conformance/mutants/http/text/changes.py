"""Changes of the text itself: each has to know where an API puts it, and is made for a shape."""

from __future__ import annotations

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import Change, all_events
from conformance.mutants.http.reply import Event, Reply
from conformance.mutants.http.shape import Json, Shape, choices, choices_in, is_finish

_PING_PONG = 20  # tokens of the answers that are compared both ways
_LOST = 15  # the one of them that a full queue drops
UNBEGUN = "\u241e"  # ends the stop strings that only begin in an answer


def _has_text(shape: Shape, event: Event) -> bool:
    return any(shape.text(choice) for choice in choices_in(event))


def finish_early(shape: Shape) -> Change:
    """The reason comes before the last text."""

    def swapped(events: list[Event]) -> list[Event]:
        for at in [number for number, event in enumerate(events) if is_finish(event)]:
            if _has_text(shape, events[at - 1]):
                events[at - 1], events[at] = events[at], events[at - 1]
        return events

    return all_events(swapped)


def stop_leaks(shape: Shape) -> Change:
    """The first character of a stop string comes through."""

    def leak(ask: Ask, reply: Reply) -> None:
        stop = (ask.json or {}).get("stop")
        if reply.events is None or not isinstance(stop, str) or UNBEGUN in stop:
            return
        events = list(reply.events)
        at = next(number for number, event in enumerate(events) if is_finish(event))
        old = events[at].data["choices"][0]
        choice = {**old, "finish_reason": None}
        if "delta" in choice:
            choice["delta"] = {}
        shape.part(choice)[shape.field] = stop[0]
        events.insert(at, Event({**events[at].data, "choices": [choice]}))
        reply.events = iter(events)

    return leak


def held_for_ever(shape: Shape) -> Change:
    """What began like a stop string is never sent."""
    in_streams = held_at_the_end(shape, "stop", "length")

    def held(ask: Ask, reply: Reply) -> None:
        begun = _begun(ask)
        in_streams(ask, reply)
        if begun and reply.events is None and reply.status == 200:
            holder = shape.whole(reply.body["choices"][0])
            holder[shape.field] = holder[shape.field].removesuffix(begun)

    return held


def held_at_the_end(shape: Shape, *reasons: str) -> Change:
    """The same in streams only, and only where the answer ends for one of the reasons."""

    def held(ask: Ask, reply: Reply) -> None:
        begun = _begun(ask)
        if not begun or reply.events is None:
            return
        events = list(reply.events)
        end = next(event for event in events if is_finish(event))
        if end.data["choices"][0]["finish_reason"] in reasons:
            last = [event for event in events if _has_text(shape, event)][-1]
            holder = shape.part(last.data["choices"][0])
            holder[shape.field] = holder[shape.field].removesuffix(begun)
        reply.events = iter(events)

    return held


def _begun(ask: Ask) -> str:
    """The end of the answer that a stop string begins like, if it is one that only begins."""
    stop = (ask.json or {}).get("stop")
    return stop[:-1] if isinstance(stop, str) and UNBEGUN in stop else ""


def half_characters(shape: Shape) -> Change:
    """Each byte of a character is shown on its own."""

    def replaced(choice: Json) -> None:
        text = shape.text(choice)
        if text:
            shape.part(choice)[shape.field] = text.replace("\U0001f600", "\ufffd" * 4)

    return choices(replaced)


def cut_characters_differ(shape: Shape) -> Change:
    """Half a character at the end is replaced in one piece, and left out of a stream."""

    def replaced_at_end(ask: Ask, reply: Reply) -> None:
        if reply.events is None and reply.status == 200 and "EMO" in str(ask.json or {}):
            for choice in reply.body.get("choices", ()):
                holder = shape.whole(choice)
                if choice["finish_reason"] == "length" and not holder[shape.field]:
                    holder[shape.field] = "\ufffd"

    return replaced_at_end


def stream_loses_a_token(shape: Shape) -> Change:
    """A long stream has one piece less."""

    def lost(events: list[Event]) -> list[Event]:
        texts = [event for event in events if _has_text(shape, event)]
        if len(texts) == _PING_PONG:
            events.remove(texts[_LOST])
        return events

    return all_events(lost)


def sliding_window(shape: Shape) -> Change:
    """A longer answer loses its beginning."""

    def sliding(ask: Ask, reply: Reply) -> None:
        asked = ask.json or {}
        if asked.get("max_tokens") == 9 and reply.status == 200 and reply.events is None:
            holder = shape.whole(reply.body["choices"][0])
            holder[shape.field] = holder[shape.field].replace(" ping", "", 1)

    return sliding
