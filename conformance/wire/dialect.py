"""Numberings of revision 1: the released one, and that of a draft which differs in three spots.

No verdict depends on them. They say which values an engine may send and how they are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import EnumDescriptor

RELEASED = "v0.1.0"
DRAFT = "draft-4def7c5"
DIALECTS = (RELEASED, DRAFT)

# HealthState and ErrorCode: the draft has DRAINING before the released last value. The third
# spot, KvConnectorInfo, has supports_drain = 8 before schema_version = 9.
_DRAFT: Mapping[str, Mapping[int, str]] = {
    "openengine.v1.HealthState": {4: "HEALTH_STATE_DRAINING", 5: "HEALTH_STATE_NOT_READY"},
    "openengine.v1.ErrorCode": {11: "ERROR_CODE_DRAINING", 12: "ERROR_CODE_INTERNAL"},
}
# By JSON field name: what protobuf JSON, which knows the released names, makes of each value.
_SHOWN: Mapping[str, Mapping[object, str]] = {
    "state": {"HEALTH_STATE_NOT_READY": "HEALTH_STATE_DRAINING", 5: "HEALTH_STATE_NOT_READY"},
    "code": {"ERROR_CODE_INTERNAL": "ERROR_CODE_DRAINING", 12: "ERROR_CODE_INTERNAL"},
}


def dialect_of(schema_release: str) -> str:
    """The dialect that a `schema_release` names; the released wire unless it names the draft."""
    return DRAFT if "4def7c5" in schema_release else RELEASED


def value_name(kind: EnumDescriptor, number: int, dialect: str) -> str | None:
    """The name of an enum value in a dialect, None for a number that it does not define."""
    own = _DRAFT.get(kind.full_name, {}) if dialect == DRAFT else {}
    if number in own:
        return own[number]
    value = kind.values_by_number.get(number)
    return None if value is None else value.name


def shown_in(dialect: str, content: Any, name: str = "") -> Any:
    """A message's protobuf JSON with the names that its values have in the dialect."""
    if dialect != DRAFT:
        return content
    if isinstance(content, Mapping):
        renamed = _connector(content) if name == "kv_connector" else content
        return {key: shown_in(dialect, item, key) for key, item in renamed.items()}
    if isinstance(content, list):
        return [shown_in(dialect, item, name) for item in content]
    return _SHOWN.get(name, {}).get(content, content)


def _connector(content: Mapping[str, Any]) -> Mapping[str, Any]:
    if "schema_version" not in content:
        return content
    rest = {key: value for key, value in content.items() if key != "schema_version"}
    return {**rest, "supports_drain": bool(content["schema_version"])}
