"""Newline-delimited JSON, parsed strictly from bytes: one JSON object on each line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from conformance.http.json_text import JsonFault, parse_json

MAX_LINE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class JsonLine:
    """One object. start, end: offsets in the body of its first byte and of the byte after its
    line feed.
    """

    value: dict[str, Any]
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class NdjsonFault:
    """A line that is no JSON object. offset: of the line in the body."""

    problem: str
    offset: int


@dataclass(frozen=True, slots=True)
class NdjsonStream:
    """A parsed body. unfinished: the last line has no line feed."""

    lines: tuple[JsonLine, ...] = ()
    faults: tuple[NdjsonFault, ...] = ()
    unfinished: bool = False


@lru_cache(maxsize=64)
def parse_ndjson(body: bytes, max_line: int = MAX_LINE_BYTES) -> NdjsonStream:
    """Parse a whole body. Never raises: what is wrong is in `faults`."""
    lines: list[JsonLine] = []
    faults: list[NdjsonFault] = []
    start = 0
    pieces = body.split(b"\n")
    for piece in pieces if pieces[-1] else pieces[:-1]:
        end = start + len(piece) + 1
        value = parse_json(piece.removesuffix(b"\r"))
        if len(piece) > max_line:
            faults.append(NdjsonFault(f"a line of more than {max_line} bytes", start))
        if isinstance(value, JsonFault):
            faults.append(NdjsonFault(f"a line that is {value.problem}", start))
        elif not isinstance(value, dict):
            faults.append(NdjsonFault("a line that is no JSON object", start))
        else:
            lines.append(JsonLine(value, start, min(end, len(body))))
        start = end
    return NdjsonStream(tuple(lines), tuple(faults), bool(pieces[-1]))
