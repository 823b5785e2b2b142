"""One HTTP call as the client saw it: plain data that laws judge without any I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate
from typing import Any

from conformance.http.json_text import JsonFault, parse_json

Headers = tuple[tuple[str, str], ...]


class End(StrEnum):
    """How a call ended, and so who ended it."""

    COMPLETE = "complete"  # the framing says that the response is whole
    CLOSED = "closed"  # only the server's close delimits the body: whole, as far as HTTP can tell
    TRUNCATED = "truncated"  # the connection ended inside the response
    NO_RESPONSE = "no_response"  # the connection ended before a status line
    MALFORMED = "malformed"  # what came is no HTTP
    CANCELLED = "cancelled"  # by the client, on purpose
    CONNECT = "connect"  # no connection: refused, unknown name, TLS; nothing was sent
    TIMEOUT_HEADERS = "timeout_headers"
    TIMEOUT_IDLE = "timeout_idle"
    TIMEOUT_TOTAL = "timeout_total"
    LIMIT_HEADERS = "limit_headers"
    LIMIT_BODY = "limit_body"
    LIMIT_CHUNKS = "limit_chunks"


# The server, not the client and not a limit, brought the response to its end.
_WHOLE = frozenset({End.COMPLETE, End.CLOSED})


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of the body as they were read. seconds: monotonic time since the call started."""

    seconds: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Ending:
    """How the call ended. details never holds what the server sent."""

    seconds: float
    kind: End
    details: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """What was sent. headers: without credentials, whose names alone are in `secret_headers`."""

    method: str
    path: str
    headers: Headers = ()
    body: bytes = b""
    secret_headers: tuple[str, ...] = ()

    @property
    def json(self) -> Any:
        """The body as JSON; None when it is none."""
        return _json(self.body)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One finished call.

    route: its name in the runtime profile, empty for none; contract: what the route promises,
    e.g. `openai-chat`. status is None when no response came. headers: names in lower case, in
    order. headers_seconds: when the headers were complete. cancelled: seconds of the client's own
    cancel.
    """

    route: str
    contract: str
    request: Request
    ending: Ending
    status: int | None = None
    http_version: str = ""
    headers: Headers = ()
    headers_seconds: float | None = None
    chunks: tuple[Chunk, ...] = ()
    cancelled: float | None = None

    @property
    def name(self) -> str:
        """Method and path: `POST /v1/chat/completions`."""
        return f"{self.request.method} {self.request.path}"

    @property
    def body(self) -> bytes:
        """The body, content coding untouched."""
        return b"".join(chunk.data for chunk in self.chunks)

    @property
    def json(self) -> Any:
        """The body as strict JSON; None when it is none (or `null`)."""
        return _json(self.body)

    @property
    def whole(self) -> bool:
        """Whether a response arrived and the server itself ended it."""
        return self.status is not None and self.ending.kind in _WHOLE

    @property
    def ok(self) -> bool:
        """Whether a whole 2xx response arrived."""
        return self.whole and self.status is not None and 200 <= self.status < 300

    @property
    def media_type(self) -> str:
        """Content type without parameters, in lower case."""
        return self.header("content-type").partition(";")[0].strip().lower()

    def header(self, name: str) -> str:
        """Value of the first header line of this name (lower case); empty when there is none."""
        return next((value for key, value in self.headers if key == name), "")

    def when(self, offset: int) -> float:
        """Seconds at which the body's byte before `offset` had arrived."""
        for chunk, end in zip(
            self.chunks, accumulate(len(chunk.data) for chunk in self.chunks), strict=True
        ):
            if end >= offset:
                return chunk.seconds
        return self.ending.seconds


def describe(exchange: Exchange) -> str:
    """How a call ended, in one line without any content."""
    ending = exchange.ending
    size = f"{len(exchange.body)} bytes"
    if exchange.status is None:
        return f"no status: {ending.kind.value} after {ending.seconds:.1f} s"
    if exchange.whole:
        return f"status {exchange.status}, {exchange.media_type or 'no content type'}, {size}"
    return f"status {exchange.status}, then {ending.kind.value} after {size}"


@lru_cache(maxsize=64)
def _json(body: bytes) -> Any:
    # Every law of a call asks for the same body.
    parsed = parse_json(body)
    return None if isinstance(parsed, JsonFault) else parsed
