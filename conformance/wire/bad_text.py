"""Finds the string in an encoded message that is not UTF-8, which the protobuf library only calls
unparsable. Servers in C++ can send one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message


def bad_text(kind: type[Message], data: bytes) -> str | None:
    """Dotted path of the first string field that is not valid UTF-8.

    None when there is none, and when the bytes are no message at all.
    """
    try:
        return next(_bad(cast(Descriptor, kind.DESCRIPTOR), data), None)
    except (IndexError, ValueError):
        return None


def _bad(message: Descriptor, data: bytes) -> Iterator[str]:
    for number, content in _delimited(data):
        field = message.fields_by_number.get(number)
        if field is None:
            continue
        if field.type == FieldDescriptor.TYPE_STRING:
            try:
                content.decode()
            except UnicodeDecodeError:
                yield field.name
        elif field.message_type is not None:
            yield from (f"{field.name}.{path}" for path in _bad(field.message_type, content))


def _delimited(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of every length-delimited field. Raises ValueError or IndexError for
    bytes that end too early or hold a group.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                _, at = _varint(data, at)
            case 1:
                at += 8
            case 5:
                at += 4
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise ValueError(f"a field of {size} bytes where {len(data) - at} are left")
                yield tag >> 3, data[at : at + size]
                at += size
            case kind:
                raise ValueError(f"wire type {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
