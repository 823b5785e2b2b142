"""Reads the JSON object of one recorded call strictly: every error says which key is wrong."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import grpc
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from conformance.errors import ConfigError, unknown_name
from conformance.wire.transcript import (
    Action,
    ActionKind,
    Ending,
    Event,
    Metadata,
    Origin,
    Transcript,
)
from oe_wire.services import METHODS

_KEYS = frozenset(
    {
        "method",
        "request",
        "request_bytes",
        "events",
        "status",
        "metadata",
        "actions",
        "deadline",
        "redacted",
    }
)
_EVENT_KEYS = frozenset({"message", "bytes", "seconds"})
_STATUS_KEYS = frozenset({"code", "details", "origin", "seconds", "trailers"})
_ACTION_KEYS = frozenset({"kind", "seconds"})

E = TypeVar("E", bound=StrEnum)


def read_transcript(stored: Mapping[str, Any], *, source: str = "", where: str = "") -> Transcript:
    """The transcript of a JSON object (keys: see transcript_json). Raises ConfigError."""
    place = _Place(source, where)
    place.known(stored, _KEYS)
    name = place.text(place.needed(stored, "method"), "method")
    if name not in METHODS:
        error = unknown_name("method", name, METHODS)
        raise ConfigError(error.problem, source=source, where=where, expected=error.expected)
    method = METHODS[name]
    request, data = _request(stored, method.request, place)
    events = _events(place.items(place.needed(stored, "events"), "events"), method.response, place)
    last = events[-1].seconds if events else 0.0
    deadline = stored.get("deadline")
    return Transcript(
        method=name,
        request=request,
        request_bytes=data,
        metadata=_metadata(stored.get("metadata", []), "metadata", place),
        events=events,
        ending=_ending(place.needed(stored, "status"), last, place),
        actions=_actions(place.items(stored.get("actions", []), "actions"), place),
        deadline=None if deadline is None else place.seconds(deadline, "deadline"),
        redacted=place.flag(stored.get("redacted", False), "redacted"),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the object stands, for errors; and the types that its values must have."""

    source: str
    where: str

    def wrong(self, key: str, problem: str, expected: str) -> ConfigError:
        where = f"{self.where}, {key!r}" if self.where else repr(key)
        return ConfigError(problem, source=self.source, where=where, expected=expected)

    def known(self, value: Mapping[str, Any], keys: frozenset[str], key: str = "") -> None:
        for name in value:
            if name not in keys:
                path = f"{key}.{name}" if key else name
                raise self.wrong(path, "unknown key", "one of " + ", ".join(sorted(keys)))

    def needed(self, value: Mapping[str, Any], key: str) -> Any:
        if key not in value:
            raise self.wrong(key, "missing", "method, request, events and status in every object")
        return value[key]

    def text(self, value: Any, key: str) -> str:
        if not isinstance(value, str):
            raise self.wrong(key, f"{_kind(value)} instead of text", "a string")
        return value

    def items(self, value: Any, key: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.wrong(key, f"{_kind(value)} instead of a list", "a list")
        return value

    def object(self, value: Any, key: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self.wrong(key, f"{_kind(value)} instead of an object", "a JSON object")
        return value

    def flag(self, value: Any, key: str) -> bool:
        if not isinstance(value, bool):
            raise self.wrong(key, f"{_kind(value)} instead of true or false", "true or false")
        return value

    def seconds(self, value: Any, key: str) -> float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:
            raise self.wrong(key, f"{value!r} is not a time", "seconds, at least 0")
        return float(value)

    def base64(self, value: Any, key: str) -> bytes:
        try:
            return base64.b64decode(self.text(value, key), validate=True)
        except ValueError as error:
            raise self.wrong(key, f"not base64: {error}", "base64 text") from error

    def member(self, value: Any, kind: type[E], key: str) -> E:
        try:
            return kind(value)
        except ValueError as error:
            raise self.wrong(
                key, f"unknown value {value!r}", "one of " + ", ".join(kind)
            ) from error


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _request(
    stored: Mapping[str, Any], kind: type[Message], place: _Place
) -> tuple[Message | None, bytes]:
    if "request_bytes" not in stored:
        request = _from_json(place.needed(stored, "request"), kind, "request", place)
        return request, request.SerializeToString(deterministic=True)
    data = place.base64(stored["request_bytes"], "request_bytes")
    try:
        return kind.FromString(data), data
    except DecodeError:
        return None, data  # malformed input is sent on purpose


def _from_json(value: Any, kind: type[Message], key: str, place: _Place) -> Message:
    try:
        return json_format.ParseDict(dict(place.object(value, key)), kind())
    except (json_format.ParseError, ValueError, RecursionError) as error:
        name = kind.DESCRIPTOR.full_name
        text = " ".join(str(error).split())  # protobuf breaks its messages into lines
        raise place.wrong(key, text, f"protobuf JSON of {name}") from error


def _events(stored: list[Any], kind: type[Message], place: _Place) -> tuple[Event, ...]:
    events: list[Event] = []
    for index, item in enumerate(stored):
        key = f"events[{index}]"
        entry = place.object(item, key)
        place.known(entry, _EVENT_KEYS, key)
        before = events[-1].seconds if events else 0.0
        seconds = place.seconds(entry.get("seconds", before), f"{key}.seconds")
        if seconds < before:
            raise place.wrong(f"{key}.seconds", f"{seconds} is before {before}", "rising times")
        events.append(Event(seconds, _response(entry, kind, key, place)))
    return tuple(events)


def _response(entry: Mapping[str, Any], kind: type[Message], key: str, place: _Place) -> Message:
    if "bytes" not in entry:
        if "message" not in entry:
            raise place.wrong(f"{key}.message", "missing", "the message or its bytes")
        return _from_json(entry["message"], kind, f"{key}.message", place)
    data = place.base64(entry["bytes"], f"{key}.bytes")
    try:
        return kind.FromString(data)
    except DecodeError as error:
        name = kind.DESCRIPTOR.full_name
        raise place.wrong(f"{key}.bytes", f"not a {name}: {error}", "its bytes") from error


def _ending(value: Any, last: float, place: _Place) -> Ending:
    stored = {"code": value} if isinstance(value, str) else place.object(value, "status")
    place.known(stored, _STATUS_KEYS, "status")
    code = stored.get("code")
    if not isinstance(code, str) or code not in grpc.StatusCode.__members__:
        expected = "one of " + ", ".join(grpc.StatusCode.__members__)
        raise place.wrong("status.code", f"unknown status {code!r}", expected)
    return Ending(
        seconds=place.seconds(stored.get("seconds", last), "status.seconds"),
        code=grpc.StatusCode[code],
        details=place.text(stored.get("details", ""), "status.details"),
        origin=place.member(stored.get("origin", Origin.REMOTE), Origin, "status.origin"),
        trailers=_metadata(stored.get("trailers", []), "status.trailers", place),
    )


def _actions(stored: list[Any], place: _Place) -> tuple[Action, ...]:
    actions = []
    for index, item in enumerate(stored):
        key = f"actions[{index}]"
        entry = place.object(item, key)
        place.known(entry, _ACTION_KEYS, key)
        kind = place.member(entry.get("kind"), ActionKind, f"{key}.kind")
        actions.append(Action(place.seconds(entry.get("seconds", 0.0), f"{key}.seconds"), kind))
    return tuple(actions)


def _metadata(value: Any, key: str, place: _Place) -> Metadata:
    pairs: list[tuple[str, str | bytes]] = []
    for index, item in enumerate(place.items(value, key)):
        at = f"{key}[{index}]"
        if not isinstance(item, list) or len(item) != 2:
            raise place.wrong(at, "not a pair", "[key, text] or [key, {base64: bytes}]")
        name, content = place.text(item[0], at), item[1]
        if isinstance(content, Mapping):
            pairs.append((name, place.base64(content.get("base64"), at)))
        else:
            pairs.append((name, place.text(content, at)))
    return tuple(pairs)
