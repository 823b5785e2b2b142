"""A stream with an error in it, in one form for every API: what tells of it, and what follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from conformance.http.exchange import Exchange
from conformance.http.ndjson import parse_ndjson
from conformance.http.sse import parse_sse
from conformance.laws.http.view import is_event_stream
from conformance.runtimes.profile import Framing, Route
from conformance.runtimes.usage import NDJSON

FAILED = "response.failed"


@dataclass(frozen=True, slots=True)
class Part:
    """A message of a stream. number: its place; text: its data; value: the object in it, empty
    when there is none.
    """

    number: int
    name: str
    text: str
    value: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Its type, or its name where the data has none."""
        found = self.value.get("type")
        return found if isinstance(found, str) else self.name

    @property
    def is_error(self) -> bool:
        """Whether it tells of an error; a response has a key `error` that is null."""
        if self.kind in {"error", FAILED} or self.value.get("object") == "error":
            return True
        return self.value.get("error") is not None and "choices" not in self.value

    def ends(self, route: Route) -> bool:
        """Whether it is the route's terminator; where there is none, whether it is a usual one."""
        stated = route.terminator
        if stated is None or stated.kind == "none":
            return self.text.strip() == "[DONE]"
        if stated.kind == "event":
            return self.kind in stated.values or self.name in stated.values
        if stated.kind == "json-field":
            return any(self.value.get(name) is True for name in stated.values)
        return self.text.strip() in stated.values


@dataclass(frozen=True, slots=True)
class FailedStream:
    """error: the message that tells of it; after: those behind it."""

    error: Part
    after: tuple[Part, ...]


def parts_of(exchange: Exchange, route: Route) -> tuple[Part, ...]:
    """The messages of a successful answer that is a stream; none of any other."""
    if route.stream is Framing.NDJSON:
        ndjson = exchange.status == 200 and exchange.media_type == NDJSON
        return tuple(_lines(exchange.body)) if ndjson else ()
    return tuple(_events(exchange.body)) if is_event_stream(exchange) else ()


def failed_stream(exchange: Exchange, route: Route) -> FailedStream | None:
    """The stream from its first error on; None without one."""
    parts = parts_of(exchange, route)
    found = next((number for number, part in enumerate(parts) if part.is_error), None)
    return None if found is None else FailedStream(parts[found], parts[found + 1 :])


def _lines(body: bytes) -> Iterator[Part]:
    for number, line in enumerate(parse_ndjson(body).lines):
        yield Part(number, "", "", line.value)


def _events(body: bytes) -> Iterator[Part]:
    for number, event in enumerate(parse_sse(body).events):
        yield Part(number, event.name, event.data, event.fields or {})
