"""What an engine declared, as the JSON file beside a recording: laws need it to judge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from conformance.errors import ConfigError
from conformance.wire.declared import Declared, TargetClass
from oe_wire import v1

_MESSAGES: Mapping[str, type[Message]] = {
    "server_info": v1.ServerInfo,
    "engine_info": v1.EngineInfo,
    "engine_scope": v1.Capabilities,
    "capabilities": v1.Capabilities,
    "model": v1.ModelInfo,
}
_TEXTS = ("dialect", "model_name")


def to_text(declared: Declared) -> str:
    """The declarations as JSON; `extra`, which is the vendor's own, is left out."""
    stored: dict[str, Any] = {"class": declared.target_class.value}
    stored |= {name: getattr(declared, name) for name in _TEXTS}
    for name in _MESSAGES:
        message = getattr(declared, name)
        if message is not None:
            shown = json_format.MessageToDict(message, preserving_proto_field_name=True)
            shown.pop("extra", None)
            stored[name] = shown
    return json.dumps(stored, indent=2, ensure_ascii=False) + "\n"


def read_declared(path: Path) -> Declared:
    """The declarations in a file. Raises ConfigError naming the key that is wrong."""
    source = str(path)
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot be read ({error})", source=source) from error
    if not isinstance(stored, Mapping):
        raise ConfigError("no JSON object", source=source, expected="what `run --record` wrote")
    known = {"class", *_TEXTS, *_MESSAGES}
    for key in stored:
        if key not in known:
            raise ConfigError(
                f"unknown key {key!r}", source=source, expected="one of " + ", ".join(sorted(known))
            )
    try:
        kind = TargetClass(stored["class"])
        texts = {name: str(stored[name]) for name in _TEXTS}
        messages = {
            name: json_format.ParseDict(dict(stored[name]), make(), ignore_unknown_fields=True)
            for name, make in _MESSAGES.items()
            if name in stored
        }
    except (KeyError, TypeError, ValueError, json_format.ParseError) as error:
        raise ConfigError(
            f"cannot be read ({error})", source=source, expected="what `run --record` wrote"
        ) from error
    return Declared(kind, **texts, **messages)  # type: ignore[arg-type]
