"""One execution of a check as data: enough to store it and to run it again without Hypothesis."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from conformance.errors import ConfigError
from conformance.wire.transcript import Metadata
from oe_wire import message_class


@dataclass(frozen=True, slots=True)
class Case:
    """What a check sends in one execution.

    request: the main message; a `request_id` of FRESH_ID is replaced by an unused id whenever the
    case runs. metadata: call metadata. params: JSON values that only the check's body understands,
    such as after how many events it aborts.
    """

    request: Message | None = None
    metadata: Metadata = ()
    params: Mapping[str, Any] = field(default_factory=dict)


# Stands for "any unused request id": ids must differ between executions, cases must not.
FRESH_ID = "$fresh"


def to_json(case: Case) -> dict[str, Any]:
    """A JSON object that `from_json` reads back: the exact bytes, and readable JSON beside."""
    stored: dict[str, Any] = {"params": dict(case.params)}
    if case.metadata:
        stored["metadata"] = [
            [key, value if isinstance(value, str) else {"base64": _encode(value)}]
            for key, value in case.metadata
        ]
    if case.request is not None:
        stored["message"] = case.request.DESCRIPTOR.full_name
        stored["bytes"] = _encode(case.request.SerializeToString(deterministic=True))
        stored["json"] = request_json(case.request)
    return stored


def from_json(stored: Mapping[str, Any]) -> Case:
    """The case of a stored object. Raises ConfigError naming the key that is wrong."""
    request = None
    if "message" in stored:
        try:
            request = message_class(stored["message"]).FromString(_decode(stored["bytes"]))
        except (KeyError, ValueError, DecodeError) as error:
            raise ConfigError(
                f"case: 'message' and 'bytes' do not make a request: {error}"
            ) from error
    try:
        metadata = tuple(
            (str(key), value if isinstance(value, str) else _decode(value["base64"]))
            for key, value in stored.get("metadata", [])
        )
    except (TypeError, ValueError, KeyError) as error:
        raise ConfigError(
            f"case: 'metadata' must be a list of [key, text or {{base64: ...}}]: {error}"
        ) from error
    params = stored.get("params", {})
    if not isinstance(params, dict):
        raise ConfigError(f"case: 'params' must be an object, not {type(params).__name__}")
    return Case(request, metadata, params)


def request_json(request: Message) -> dict[str, Any]:
    """The request as protobuf JSON with the field names of the .proto files.

    NaN and infinities become the strings that protobuf JSON uses for them.
    """
    as_dict: dict[str, Any] = json.loads(
        json_format.MessageToJson(request, preserving_proto_field_name=True, indent=None)
    )
    return as_dict


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
