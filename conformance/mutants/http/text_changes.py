"""Changes of the text itself: they have to know where an API puts it."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import Change, all_events
from conformance.mutants.http.reply import Event, Reply
from conformance.mutants.http.shape import Json, Shape, choices, is_finish

_PING_PONG = 20  # tokens of the answers that are compared both ways
UNBEGUN = "\u241e"  # ends the stop strings that only begin in an answer


def text_changes(shape: Shape) -> Mapping[str, Change]:
    """The changes that touch the text itself."""

    def has_text(event: Event) -> bool:
        return isinstance(event.data, dict) and any(
            shape.text(choice) for choice in event.data["choices"]
        )

    def finish_early(events: list[Event]) -> list[Event]:
        for at in [number for number, event in enumerate(events) if is_finish(event)]:
            if has_text(events[at - 1]):
                events[at - 1], events[at] = events[at], events[at - 1]
        return events

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

    def held_for_ever(ask: Ask, reply: Reply) -> None:
        stop = (ask.json or {}).get("stop")
        if not isinstance(stop, str) or UNBEGUN not in stop:
            return
        begun = stop[:-1]
        if reply.events is not None:
            events = list(reply.events)
            last = [event for event in events if has_text(event)][-1]
            holder = shape.part(last.data["choices"][0])
            holder[shape.field] = holder[shape.field].removesuffix(begun)
            reply.events = iter(events)
        elif reply.status == 200:
            holder = shape.whole(reply.body["choices"][0])
            holder[shape.field] = holder[shape.field].removesuffix(begun)

    def half_characters(choice: Json) -> None:
        text = shape.text(choice)
        if text:
            shape.part(choice)[shape.field] = text.replace("\U0001f600", "\ufffd" * 4)

    def replaced_at_end(ask: Ask, reply: Reply) -> None:
        if reply.events is None and reply.status == 200 and "EMO" in str(ask.json or {}):
            for choice in reply.body.get("choices", ()):
                holder = shape.whole(choice)
                if choice["finish_reason"] == "length" and not holder[shape.field]:
                    holder[shape.field] = "\ufffd"

    def loses_a_token(events: list[Event]) -> list[Event]:
        texts = [event for event in events if has_text(event)]
        if len(texts) == _PING_PONG:
            events.remove(texts[15])
        return events

    def sliding(ask: Ask, reply: Reply) -> None:
        asked = ask.json or {}
        if asked.get("max_tokens") == 9 and reply.status == 200 and reply.events is None:
            holder = shape.whole(reply.body["choices"][0])
            holder[shape.field] = holder[shape.field].replace(" ping", "", 1)

    return {
        "finish-early": all_events(finish_early),
        "stop-leaks": leak,
        "held-for-ever": held_for_ever,
        "half-characters": choices(half_characters),
        "cut-characters-differ": replaced_at_end,
        "stream-loses-a-token": all_events(loses_a_token),
        "sliding-window": sliding,
    }
