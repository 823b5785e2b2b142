"""The only place of this package that reads protobuf descriptors: field paths, types, methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from conformance.errors import ConfigError, unknown_name
from oe_wire import message_class, pool

PACKAGE = "openengine.v1"
UNSPECIFIED = "UNSPECIFIED"

_SCALARS: dict[int, str] = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def message_descriptor(name: str) -> Descriptor:
    """Descriptor of a message of the package, by short name. Raises ConfigError."""
    try:
        return cast("Descriptor", message_class(f"{PACKAGE}.{name}").DESCRIPTOR)
    except KeyError:
        raise ConfigError(
            f"unknown message {name!r}", expected=f"a message of package {PACKAGE}"
        ) from None


def field_of(message: Message, name: str) -> FieldDescriptor | None:
    """Descriptor of a field of this message's own type, None when it has no such field."""
    fields = cast("Descriptor", message.DESCRIPTOR).fields_by_name
    return fields.get(name)


def is_repeated(field: FieldDescriptor) -> bool:
    """Whether a field is a list. protobuf 5 has only `label`, which 7 no longer offers."""
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(getattr(field, "label", None) == FieldDescriptor.LABEL_REPEATED)


def resolve(root: Descriptor, path: str) -> FieldDescriptor:
    """The field at a dotted path below `root`. Raises ConfigError for a path that leads nowhere."""
    message: Descriptor | None = root
    field: FieldDescriptor | None = None
    for part in path.split("."):
        if message is None:
            raise ConfigError(
                f"{part!r} lies below a field that holds no single message",
                where=path,
                expected="a path through submessages to one field",
            )
        field = message.fields_by_name.get(part)
        if field is None:
            raise unknown_name(
                f"field of {message.name}", part, message.fields_by_name, source=path
            )
        message = None if is_repeated(field) else field.message_type
    if field is None:
        raise ConfigError("empty field path", expected="a dotted path")
    return field


def type_name(field: FieldDescriptor) -> str:
    """Type as profile files spell it: `uint32`, `repeated AbortTargetKind`, `LoadCapabilities`."""
    if field.enum_type is not None:
        name = field.enum_type.name
    elif field.message_type is not None:
        name = field.message_type.name
    else:
        name = _SCALARS.get(field.type, "other")
    return f"repeated {name}" if is_repeated(field) else name


def enum_label(enum: EnumDescriptor, number: int) -> str:
    """Short lower-case name of an enum value: FINISH_REASON_STOP gives `stop`.

    The prefix is what precedes UNSPECIFIED in the name of value zero; a number that the
    descriptor does not know gives `unknown_<number>`.
    """
    value = enum.values_by_number.get(number)
    if value is None:
        return f"unknown_{number}"
    prefix = enum.values_by_number[0].name.removesuffix(UNSPECIFIED)
    return value.name.removeprefix(prefix).lower()


def enum_labels(enum: EnumDescriptor) -> frozenset[str]:
    """Short names of every value of `enum`."""
    return frozenset(enum_label(enum, value.number) for value in enum.values)


def has_method(service: str, method: str) -> bool:
    """Whether the descriptors hold `service` (fully qualified) with an RPC `method`."""
    return method in methods_of(service)


def methods_of(service: str) -> frozenset[str]:
    """RPC names of a service; empty for one that does not exist."""
    try:
        descriptor = pool.FindServiceByName(service)
    except KeyError:
        return frozenset()
    return frozenset(descriptor.methods_by_name)


def leaf_paths(message: Descriptor, prefix: str = "") -> Iterator[str]:
    """Dotted paths of every field below `message` that is not itself one submessage."""
    for field in message.fields:
        path = f"{prefix}{field.name}"
        if field.message_type is not None and not is_repeated(field):
            yield from leaf_paths(field.message_type, f"{path}.")
        else:
            yield path
