"""A fault that both text APIs can have; each API makes a mutant of it, with the ids of its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import Change, HttpMutant
from conformance.mutants.http.shape import Json, Shape

# What breaks besides where an answer ends for another reason; where every message gives one.
ENDS = ("own_end", "stop", "stop_stream")
EVERYWHERE = ("finish_value", "after_finish", "cut", "same", *ENDS)
# Rows of http-common about what the profile states of a stream.
TERMINATOR, USAGE = "OE-HTTP-SSE-006", "OE-HTTP-SSE-007"


@dataclass(frozen=True, slots=True)
class TextFault:
    """about: what the broken row is about, by which a Shape finds its id. change: makes an on_reply
    for a shape, where it needs one. The others are those of HttpMutant.
    """

    name: str
    about: str
    story: str
    on_ask: Callable[[Json, Ask], None] | None = None
    on_reply: Change | None = None
    change: Callable[[Shape], Change] | None = None
    also: tuple[str, ...] = ()

    def mutant(self, shape: Shape) -> HttpMutant:
        """The fault in one API."""
        on_reply = self.on_reply if self.change is None else self.change(shape)
        return shape.mutant(
            self.name,
            self.about,
            self.story,
            on_ask=self.on_ask,
            on_reply=on_reply,
            also=self.also,
        )
