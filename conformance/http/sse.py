"""Server-sent events, parsed strictly from bytes: the oracle for every stream that uses them.

Events are what the HTML standard's parser would dispatch. What that parser drops in silence
(unknown fields, an event cut off at the end, broken UTF-8) is kept as a fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from conformance.http.json_text import parse_json

MAX_LINE_BYTES = 256 * 1024
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class SseEvent:
    """A dispatched event. name: empty when the stream gave none (clients then say `message`).
    start, end: offsets in the body of its first byte and of the byte after its blank line.
    """

    data: str
    name: str = ""
    id: str = ""
    start: int = 0
    end: int = 0

    @property
    def value(self) -> Any:
        """The JSON value that the data is, or a JsonFault."""
        return parse_json(self.data.encode())

    @property
    def fields(self) -> dict[str, Any] | None:
        """The JSON object that the data is; None when it is anything else."""
        value = self.value
        return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class SseFault:
    """Something that no right server sends. offset: of the line in the body."""

    problem: str
    offset: int


@dataclass(frozen=True, slots=True)
class SseStream:
    """A parsed body. comments: number of comment lines. unfinished: the body ends inside an event,
    which clients drop. bom: the body starts with a byte order mark.
    """

    events: tuple[SseEvent, ...] = ()
    faults: tuple[SseFault, ...] = ()
    comments: int = 0
    unfinished: bool = False
    bom: bool = False


@dataclass(slots=True)
class _Building:
    """An event whose blank line has not come."""

    start: int = -1
    data: list[str] = field(default_factory=list)
    name: str = ""


@dataclass(slots=True)
class _Parser:
    events: list[SseEvent] = field(default_factory=list)
    faults: list[SseFault] = field(default_factory=list)
    comments: int = 0
    id: str = ""
    event: _Building = field(default_factory=_Building)

    def line(self, line: bytes, start: int, end: int) -> None:
        if not line:
            self._dispatch(end)
            return
        if line.startswith(b":"):
            self.comments += 1
            return
        if self.event.start < 0:
            self.event.start = start
        name, _, value = line.partition(b":")
        self._field(name, _text(value.removeprefix(b" "), start, self.faults), start)

    def _field(self, name: bytes, value: str, start: int) -> None:
        match name:
            case b"data":
                self.event.data.append(value)
            case b"event":
                self.event.name = value
            case b"id" if "\0" not in value:
                self.id = value
            case b"id":
                self.faults.append(SseFault("an id with a NUL character", start))
            case b"retry" if not (value.isascii() and value.isdigit()):
                self.faults.append(SseFault("a retry that is no number", start))
            case b"retry":
                pass
            case _:
                problem = "a line that is neither a comment nor one of data, event, id, retry"
                self.faults.append(SseFault(problem, start))

    def _dispatch(self, end: int) -> None:
        built, self.event = self.event, _Building()
        if built.data:
            data = "\n".join(built.data)
            self.events.append(SseEvent(data, built.name, self.id, built.start, end))
        elif built.name:
            self.faults.append(SseFault("an event without data, which clients drop", built.start))


@lru_cache(maxsize=64)
def parse_sse(body: bytes, max_line: int = MAX_LINE_BYTES) -> SseStream:
    """Parse a whole body. Never raises: what is wrong is in `faults`."""
    parser = _Parser()
    start = len(_BOM) if body.startswith(_BOM) else 0
    bom = start > 0
    while (found := _LINE_END.search(body, start)) is not None:
        line = body[start : found.start()]
        if len(line) > max_line:
            parser.faults.append(SseFault(f"a line of more than {max_line} bytes", start))
        parser.line(line, start, found.end())
        start = found.end()
    rest = body[start:]
    unfinished = bool(rest) or parser.event.start >= 0
    return SseStream(tuple(parser.events), tuple(parser.faults), parser.comments, unfinished, bom)


def _text(value: bytes, offset: int, faults: list[SseFault]) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        faults.append(SseFault("a line that is not UTF-8", offset))
        return value.decode("utf-8", errors="replace")
