"""What a target declares, as `applies` expressions read it."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Protocol, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from conformance.model.descriptors import enum_label, field_of, is_repeated

Value: TypeAlias = bool | int | float | str | tuple[bool | int | float | str, ...] | Message | None

# Namespace of an expression -> the message its dotted names are checked against. A legacy
# target answers ServerInfo, whose fields are the first twelve of EngineInfo.
ROOTS: dict[str, str] = {
    "model": "ModelInfo",
    "capabilities": "Capabilities",
    "engine": "EngineInfo",
}


class Facts(Protocol):
    """Declarations of one target, for one model under test."""

    @property
    def model(self) -> Message | None: ...  # ModelInfo

    @property
    def capabilities(self) -> Message | None: ...  # Capabilities in the scope of that model

    @property
    def engine(self) -> Message | None: ...  # EngineInfo, or ServerInfo of a legacy target

    @property
    def role(self) -> str: ...  # aggregated, prefill, decode, unspecified

    @property
    def dialect(self) -> str: ...  # v0.1.0 or another numbering of the same revision

    @property
    def legacy(self) -> bool: ...

    @property
    def single_service(self) -> bool: ...  # legacy, with the one service of the first drafts

    @property
    def generates(self) -> bool: ...  # role and model can produce tokens

    @property
    def profiles(self) -> AbstractSet[str]: ...  # names of advertised profiles


def read(facts: Facts, name: str) -> Value:
    """Value of a plain or dotted name; None for anything absent on the way."""
    namespace, _, path = name.partition(".")
    if path:
        return read_field(_root(facts, namespace), path)
    if namespace == "profiles":
        return tuple(sorted(facts.profiles))
    plain: dict[str, bool | str] = {
        "role": facts.role,
        "dialect": facts.dialect,
        "legacy": facts.legacy,
        "generates": facts.generates,
    }
    return plain[namespace] if namespace in plain else _root(facts, namespace)


def _root(facts: Facts, namespace: str) -> Message | None:
    roots = {"model": facts.model, "capabilities": facts.capabilities, "engine": facts.engine}
    return roots[namespace]


def read_field(message: Message | None, path: str) -> Value:
    """Value at a dotted path: enums as short names, repeated fields as tuples, absent as None.

    A field without presence reads as its stored value, because absence and default are the same
    bytes there. A field that this message type lacks (ServerInfo for EngineInfo) is absent.
    """
    parts = path.split(".")
    for part in parts[:-1]:
        message = _submessage(message, part)
    if message is None:
        return None
    field = field_of(message, parts[-1])
    if field is None or (field.has_presence and not message.HasField(field.name)):
        return None
    value = getattr(message, field.name)
    if is_repeated(field):
        return tuple(_scalar(field, item) for item in value)
    return _scalar(field, value) if field.message_type is None else _as_message(value)


def _submessage(message: Message | None, name: str) -> Message | None:
    if message is None or field_of(message, name) is None:
        return None
    return _as_message(getattr(message, name)) if message.HasField(name) else None


def _as_message(value: object) -> Message | None:
    return value if isinstance(value, Message) else None


def _scalar(field: FieldDescriptor, value: object) -> bool | int | float | str:
    if field.enum_type is not None and isinstance(value, int):
        return enum_label(field.enum_type, value)
    if isinstance(value, bool | int | float | str):
        return value
    return repr(value)
