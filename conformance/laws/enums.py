"""A law about enum values: an engine sends only numbers that its schema revision defines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from conformance.laws.errors import EVERY_RPC
from conformance.laws.law import Finding, Ruling, law
from conformance.wire.declared import Declared
from conformance.wire.dialect import value_name
from conformance.wire.transcript import Transcript

# schema_revision of the descriptors that this suite reads answers with.
KNOWN_REVISION = 1
PACKAGES = ("openengine.v1.", "grpc.health.v1.")


def newer(declared: Declared) -> bool:
    """Whether the engine speaks a later revision, whose values the suite cannot know."""
    return getattr(declared.engine, "schema_revision", 0) > KNOWN_REVISION


def undefined(message: Message) -> Iterator[tuple[str, int]]:
    """Path and number of every enum value in the message that the descriptors do not define."""
    for path, kind, number in _values(message, ""):
        if number not in kind.values_by_number:
            yield path, number


def _values(message: Message, prefix: str) -> Iterator[tuple[str, EnumDescriptor, int]]:
    fields = _with_enums(message.DESCRIPTOR)
    if not fields:
        return
    for field, value in message.ListFields():
        if field.number not in fields:
            continue
        path = f"{prefix}{field.name}"
        held, items = _held(field, value)
        for item in items:
            if held.enum_type is not None:
                yield path, held.enum_type, item
            else:
                yield from _values(item, f"{path}.")


def _held(field: FieldDescriptor, value: Any) -> tuple[FieldDescriptor, Iterable[Any]]:
    """What a field holds: of a map its values, whose keys are never enums."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return field.message_type.fields_by_name["value"], value.values()
    return field, value if field.is_repeated else (value,)


@cache
def _with_enums(kind: Descriptor) -> frozenset[int]:
    """Numbers of the fields that are enums or hold some, at any depth. A stream has thousands of
    messages, and few of their fields do.
    """
    return frozenset(
        field.number for field in kind.fields if _holds_enum(field, frozenset({kind.full_name}))
    )


def _holds_enum(field: FieldDescriptor, above: frozenset[str]) -> bool:
    if field.enum_type is not None:
        return field.enum_type.full_name.startswith(PACKAGES)
    kind = field.message_type
    if kind is None or kind.full_name in above or not kind.full_name.startswith(PACKAGES):
        return False
    return any(_holds_enum(each, above | {kind.full_name}) for each in kind.fields)


@law("OE-CORE-ENUM-002", methods=EVERY_RPC)
def defined_values(transcript: Transcript, declared: Declared) -> Ruling:
    """Every enum value that is sent has a name."""
    if newer(declared):
        return None
    judged = False
    for at, message in enumerate(transcript.messages):
        for path, kind, number in _values(message, ""):
            judged = True
            if value_name(kind, number, declared.dialect) is None:
                return Finding(f"a value of {kind.name} in {path}", str(number), at)
    return True if judged else None


LAWS = (defined_values,)
