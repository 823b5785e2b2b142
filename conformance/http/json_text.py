"""Strict JSON (RFC 8259) on bytes: what lenient parsers let through is a finding here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn


@dataclass(frozen=True, slots=True)
class JsonFault:
    """Why bytes are no JSON text; never quotes them."""

    problem: str


class _Fault(ValueError):
    """Ends a parse."""


def parse_json(data: bytes) -> Any:
    """The value, or a JsonFault: for anything but one JSON text in UTF-8 without byte order mark,
    for NaN and infinities, and for an object with one name twice.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return JsonFault(f"not UTF-8 at byte {error.start}")
    if text.startswith("\ufeff"):
        return JsonFault("starts with a byte order mark")
    try:
        return json.loads(text, parse_constant=_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        return JsonFault(f"no JSON: {error.msg} at character {error.pos}")
    except (ValueError, RecursionError) as error:  # of a number with too many digits, too
        return JsonFault(str(error) or "nested too deeply")


def _constant(name: str) -> NoReturn:
    raise _Fault(f"{name} is no JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Fault("an object has one name twice")
    return found
