"""An answer before it is bytes, so that a mutant can change it at the level its fault has."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Event:
    """A message of a stream: a JSON value, or text that goes out as it is."""

    data: Any
    name: str = ""

    @property
    def text(self) -> str:
        """The data as one line."""
        if isinstance(self.data, str):
            return self.data
        return json.dumps(self.data, ensure_ascii=False)


def sse_bytes(event: Event) -> bytes:
    """An event as a right server writes it."""
    name = f"event: {event.name}\n" if event.name else ""
    return f"{name}data: {event.text}\n\n".encode(errors="surrogatepass")


def ndjson_bytes(event: Event) -> bytes:
    """A line of newline-delimited JSON."""
    return f"{event.text}\n".encode(errors="surrogatepass")


@dataclass(slots=True)
class Reply:
    """status and headers; either a body (JSON, or text as it is) or the events of a stream.

    pauses: seconds that pass before a body goes out, for as long as its client is there.
    encode: an event as bytes. prefix, suffix: bytes around all events. finish: whether the last
    chunk is written. silent: close without a word. stall: keep the connection and say nothing.
    """

    status: int = 200
    body: Any = None
    events: Iterator[Event] | None = None
    pauses: Generator[float] | None = None
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    encode: Callable[[Event], bytes] = sse_bytes
    prefix: bytes = b""
    suffix: bytes = b""
    finish: bool = True
    silent: bool = False
    stall: bool = False

    @property
    def body_bytes(self) -> bytes:
        """The body of an answer in one piece."""
        if self.body is None:
            return b""
        if isinstance(self.body, bytes):
            return self.body
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return text.encode(errors="surrogatepass")


def streamed(events: Iterator[Event]) -> Reply:
    """A stream of server-sent events."""
    return Reply(events=events, content_type="text/event-stream")


def nested_error(problem: str, kind: str) -> dict[str, Any]:
    """An error as the OpenAI API envelopes it."""
    return {"error": {"message": problem, "type": kind, "param": None, "code": None}}


class RefusedError(Exception):
    """A request that the server refuses: status, type and a message that quotes nothing."""

    def __init__(self, status: int, problem: str, kind: str = "invalid_request_error") -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.kind = kind

    @property
    def reply(self) -> Reply:
        """As the OpenAI API envelopes it."""
        return Reply(self.status, nested_error(self.problem, self.kind))
