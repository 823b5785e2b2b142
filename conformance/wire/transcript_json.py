"""Transcripts as JSON lines: one call on a line, readable, and exact where bytes are given.

    method         "openengine.v1.Inference/Generate"
    request        the request as protobuf JSON (field names of the .proto files)
    request_bytes  base64 of the bytes sent; goes before `request`, which may then be absent
    events         list of {message: protobuf JSON, seconds: number, bytes: base64}
    status         "OK", or {code: "OK", details: text, origin: "remote" | "local",
                   seconds: number, trailers: metadata}
    metadata       list of [key, text] or [key, {base64: bytes}]
    actions        list of {kind: "cancel" | "abort" | "deadline" | "stall", seconds: number}
    deadline       seconds that the call was allowed
    redacted       true when content was taken out: rules that read content do not judge the call

A recording made by hand needs method, request, events (each with `message`) and status.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from conformance.errors import ConfigError
from conformance.wire.transcript import Metadata, Transcript
from conformance.wire.transcript_reader import read_transcript


def to_line(transcript: Transcript, *, exact: bool = True) -> str:
    """The transcript as one line of JSON without the line end.

    exact: with the bytes of every message, so that unknown fields and the order of fields stay.
    """
    return json.dumps(to_object(transcript, exact=exact), ensure_ascii=False, allow_nan=False)


def to_object(transcript: Transcript, *, exact: bool = True) -> dict[str, Any]:
    """The transcript as JSON values (see the module's docstring)."""
    ending = transcript.ending
    stored: dict[str, Any] = {"method": transcript.method}
    shown = None if transcript.request is None else _json_of(transcript.request)
    if shown is not None:
        stored["request"] = shown
    if exact or shown is None:
        stored["request_bytes"] = _base64(transcript.request_bytes)
    stored["metadata"] = _metadata(transcript.metadata)
    stored["events"] = [
        {"seconds": event.seconds, **_message(event.message, exact=exact)}
        for event in transcript.events
    ]
    stored["status"] = {
        "code": ending.code.name,
        "details": ending.details,
        "origin": ending.origin.value,
        "seconds": ending.seconds,
        "trailers": _metadata(ending.trailers),
    }
    stored["actions"] = [
        {"kind": action.kind.value, "seconds": action.seconds} for action in transcript.actions
    ]
    if transcript.deadline is not None:
        stored["deadline"] = transcript.deadline
    if transcript.redacted:
        stored["redacted"] = True
    return stored


def from_line(line: str, *, source: str = "", number: int = 1) -> Transcript:
    """The transcript of one line. Raises ConfigError naming source, line and key."""
    where = f"line {number}"
    try:
        stored = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"not JSON: {error}", source=source, where=where, expected="one object per line"
        ) from error
    if not isinstance(stored, Mapping):
        raise ConfigError(
            f"a {type(stored).__name__}", source=source, where=where, expected="a JSON object"
        )
    return read_transcript(stored, source=source, where=where)


def read_lines(lines: Iterable[str], *, source: str = "") -> Iterator[tuple[int, Transcript]]:
    """The transcripts of JSON lines with their line numbers; empty lines are skipped."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, from_line(line, source=source, number=number)


def read_transcripts(path: str | Path) -> Iterator[tuple[int, Transcript]]:
    """Every transcript of a file with its line number.

    Raises ConfigError for a file that is unreadable or holds none, and at the first bad line.
    """
    source = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"cannot read it: {error.strerror}", source=source, expected="a file of JSON lines"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8 text", source=source, expected="JSON lines") from error
    # Not splitlines(): JSON text may hold the other characters that it takes for line ends.
    if not text.strip():
        raise ConfigError("no transcript", source=source, expected="at least one JSON line")
    yield from read_lines(text.split("\n"), source=source)


def _json_of(message: Message) -> Any:
    """Protobuf JSON, or None for what it cannot say: NaN inside a Struct, deep nesting."""
    try:
        return json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (ValueError, json_format.Error, RecursionError):
        return None


def _message(message: Message, *, exact: bool) -> dict[str, Any]:
    shown = _json_of(message)
    stored: dict[str, Any] = {} if shown is None else {"message": shown}
    if exact or shown is None:
        stored["bytes"] = _base64(message.SerializeToString())
    return stored


def _metadata(metadata: Metadata) -> list[list[Any]]:
    return [
        [key, value if isinstance(value, str) else {"base64": _base64(value)}]
        for key, value in metadata
    ]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
