"""Takes prompts and outputs out of messages before they go into a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.wire.payload import PAYLOAD_FIELDS


def redacted(value: Any, name: str = "") -> Any:
    """A copy of a message's JSON with every payload replaced by its size.

    An object under a payload name (TokenOutput is the event `token`) is looked into, so that
    structure, counts and numbers that carry no content stay.
    """
    if isinstance(value, Mapping):
        return {key: redacted(item, key) for key, item in value.items()}
    if isinstance(value, list) and not (name in PAYLOAD_FIELDS and not _has_objects(value)):
        return [redacted(item, name) for item in value]
    if name not in PAYLOAD_FIELDS:
        return value
    if isinstance(value, list):
        return f"<{len(value)} items>"
    if isinstance(value, str):
        return f"<{len(value)} characters>"
    return "<number>"


def _has_objects(value: list[Any]) -> bool:
    return any(isinstance(item, Mapping) for item in value)
