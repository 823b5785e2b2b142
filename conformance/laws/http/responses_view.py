"""Responses of the OpenAI API as laws and checks look at them: an answer, or named events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from conformance.http.exchange import Exchange
from conformance.http.sse import SseStream, parse_sse
from conformance.laws.http.view import answer_of, done_in, is_event_stream, objects_in

CONTRACT = "openai-responses"
ENDS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
STATUSES = frozenset({*ENDS.values(), "in_progress", "cancelled", "queued"})


@dataclass(frozen=True, slots=True)
class NamedEvent:
    """An event with its JSON data. number: its place in the stream. kind: its type, or its name
    where the data has none.
    """

    number: int
    name: str
    value: dict[str, Any]

    @property
    def kind(self) -> str:
        """What it is about."""
        found = self.value.get("type")
        return found if isinstance(found, str) else self.name

    @property
    def response(self) -> dict[str, Any]:
        """The response that it carries; empty when it carries none."""
        found = self.value.get("response")
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class ResponseStream:
    """A parsed stream. done: numbers of the events that are [DONE]."""

    sse: SseStream
    events: tuple[NamedEvent, ...]
    done: tuple[int, ...]

    def of(self, *kinds: str) -> Iterator[NamedEvent]:
        """Events of these types."""
        return (event for event in self.events if event.kind in kinds)

    @property
    def last(self) -> NamedEvent | None:
        """The event that ends the response; None without one."""
        return next((event for event in reversed(self.events) if event.kind in ENDS), None)

    @property
    def failed(self) -> bool:
        """Whether the stream tells of an error."""
        return self.error is not None or any(self.of("response.failed"))

    @property
    def error(self) -> NamedEvent | None:
        """The first event that is an error, be it one without a type; a response has a key of this
        name inside.
        """
        return next(
            (e for e in self.events if e.kind == "error" or e.value.get("error") is not None), None
        )

    @property
    def text(self) -> str:
        """All deltas of text."""
        deltas = (event.value.get("delta") for event in self.of("response.output_text.delta"))
        return "".join(delta for delta in deltas if isinstance(delta, str))


def response_stream(exchange: Exchange) -> ResponseStream | None:
    """The stream of a successful answer; None when it is none."""
    return _stream(exchange.body) if is_event_stream(exchange) else None


@lru_cache(maxsize=64)
def _stream(body: bytes) -> ResponseStream:
    sse = parse_sse(body)
    events = (NamedEvent(number, event.name, value) for number, event, value in objects_in(sse))
    return ResponseStream(sse, tuple(events), done_in(sse))


def response_of(exchange: Exchange) -> dict[str, Any] | None:
    """The response object of an answer in one piece; None when it is none."""
    return answer_of(exchange)


def text_of(response: dict[str, Any]) -> str:
    """The text of a response's messages."""
    parts = [part for item in items_of(response) for part in parts_of(item)]
    texts = (part.get("text") for part in parts if part.get("type") == "output_text")
    return "".join(text for text in texts if isinstance(text, str))


def items_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    """Output items that are objects."""
    output = response.get("output")
    return [i for i in output if isinstance(i, dict)] if isinstance(output, list) else []


def parts_of(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Content parts of an item that are objects."""
    content = item.get("content")
    return [p for p in content if isinstance(p, dict)] if isinstance(content, list) else []
