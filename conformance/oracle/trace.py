"""What W3C Trace Context says of a traceparent or tracestate value. No value may fail a call; this
tells which rule a value belongs to.
"""

from __future__ import annotations

import re
from enum import StrEnum

from conformance.wire.transcript import Metadata

PARENT = "traceparent"
STATE = "tracestate"

_PARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
    r"(?P<rest>-.*)?"
)
_KEY = r"([a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
_VALUE = r"[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
_MEMBER = re.compile(rf"{_KEY}={_VALUE}")
MAX_MEMBERS = 32


class Parent(StrEnum):
    """How a traceparent is to be read."""

    VALID = "valid"  # version 00 with the known flags
    FUTURE = "future"  # a higher version, or flags that version 00 does not name: valid too
    INVALID = "invalid"  # ignored, and tracestate with it


def parent_kind(value: str) -> Parent:
    """The kind of one traceparent value."""
    match = _PARENT.fullmatch(value)
    if match is None or match["version"] == "ff":
        return Parent.INVALID
    if int(match["trace"], 16) == 0 or int(match["span"], 16) == 0:
        return Parent.INVALID
    if match["version"] == "00":
        if match["rest"] is not None:
            return Parent.INVALID
        return Parent.VALID if match["flags"] in {"00", "01"} else Parent.FUTURE
    return Parent.FUTURE


def state_parses(value: str) -> bool:
    """Whether a tracestate is a list of at most 32 members with different keys; empty is one."""
    members = [member.strip(" \t") for member in value.split(",")]
    members = [member for member in members if member]
    keys = [member.partition("=")[0] for member in members]
    well_formed = all(_MEMBER.fullmatch(member) for member in members)
    return well_formed and len(members) <= MAX_MEMBERS and len(set(keys)) == len(keys)


def values(metadata: Metadata, key: str) -> tuple[str, ...]:
    """Every text value of a key, in order."""
    return tuple(value for name, value in metadata if name == key and isinstance(value, str))
