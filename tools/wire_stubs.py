"""Type stubs of one protobuf package, from its descriptors.

Enums are plain ints on the wire and in Python, so fields of an enum type are `int`.
"""

from collections.abc import Iterable

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorSet,
)

HEADER = '''\
"""Generated from proto/ by `make protos`; edit the protos instead."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
)
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

from oe_wire.struct import Struct
'''
_F = FieldDescriptorProto
SCALARS = {
    _F.TYPE_DOUBLE: "float",
    _F.TYPE_FLOAT: "float",
    _F.TYPE_BOOL: "bool",
    _F.TYPE_STRING: "str",
    _F.TYPE_BYTES: "bytes",
}
STRUCT = ".google.protobuf.Struct"


def render(descriptors: FileDescriptorSet, package: str) -> str:
    """The .pyi text of every message, enum and enum value of the package."""
    parts = [HEADER]
    for file in descriptors.file:
        if file.package != package:
            continue
        parts += ["\n".join([*_enum(enum), ""]) for enum in file.enum_type]
        parts += ["\n".join([*_message(message, package), ""]) for message in file.message_type]
    return "\n".join(parts)


def _enum(enum: EnumDescriptorProto) -> list[str]:
    values = [f"{value.name}: Final = {value.number}" for value in enum.value]
    return [f"{enum.name}: EnumTypeWrapper", *values]


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" if line else line for line in lines]


def _message(message: DescriptorProto, package: str) -> list[str]:
    entries = {f".{package}.{message.name}.{nested.name}": nested for nested in message.nested_type}
    fields = [_Field(field, package, entries) for field in message.field]
    body: list[str] = []
    for enum in message.enum_type:
        body += _enum(enum)
    for field in fields:
        body += field.attribute()
    body += _constructor(fields)
    body += _presence(message, fields)
    if not body:
        return [f"class {message.name}(Message): ..."]
    return [f"class {message.name}(Message):", *_indent(body)]


def _constructor(fields: list["_Field"]) -> list[str]:
    if not fields:
        return ["def __init__(self) -> None: ..."]
    parameters = [f"    {field.name}: {field.accepted()} | None = ...," for field in fields]
    return ["def __init__(", "    self,", "    *,", *parameters, ") -> None: ..."]


def _presence(message: DescriptorProto, fields: list["_Field"]) -> list[str]:
    """HasField and WhichOneof, narrowed to the names that exist so that a typo is a type error."""
    oneofs: dict[str, list[str]] = {}
    for field in fields:
        if field.in_oneof:
            oneofs.setdefault(message.oneof_decl[field.oneof_index].name, []).append(field.name)
    if len(oneofs) > 1:
        raise ValueError(f"{message.name}: the stubs cover one oneof a message, not {len(oneofs)}")
    known = [field.name for field in fields if field.has_presence] + list(oneofs)
    lines: list[str] = []
    if known:
        lines.append(f"def HasField(self, field_name: {_literal(known)}) -> bool: ...")
    for oneof, members in oneofs.items():
        group, result = _literal([oneof]), _literal(members)
        lines.append(f"def WhichOneof(self, oneof_group: {group}) -> {result} | None: ...")
    return lines


def _literal(names: list[str]) -> str:
    return "Literal[" + ", ".join(f'"{name}"' for name in names) + "]"


class _Field:
    """One field with its Python types."""

    def __init__(
        self, field: FieldDescriptorProto, package: str, entries: dict[str, DescriptorProto]
    ) -> None:
        self.name = field.name
        self.oneof_index = field.oneof_index
        self.in_oneof = field.HasField("oneof_index") and not field.proto3_optional
        self.repeated = field.label == _F.LABEL_REPEATED
        self.message = field.type == _F.TYPE_MESSAGE
        self.has_presence = not self.repeated and (self.message or field.HasField("oneof_index"))
        self.map_value = ""
        entry = entries.get(field.type_name)
        if entry is not None:
            self.map_value = entry.field[1].type_name.removeprefix(f".{package}.")
        self.is_struct = field.type_name == STRUCT
        if self.is_struct:
            self.type = "Struct"
        elif self.message:
            self.type = field.type_name.removeprefix(f".{package}.")
        else:
            self.type = SCALARS.get(field.type, "int")

    def attribute(self) -> list[str]:
        """The attribute's declaration; what cannot be assigned is a property."""
        if self.map_value:
            read = f"MessageMap[str, {self.map_value}]"
        elif self.repeated:
            kind = "Composite" if self.message else "Scalar"
            read = f"Repeated{kind}FieldContainer[{self.type}]"
        elif self.message:
            read = self.type
        else:
            return [f"{self.name}: {self.type}"]
        return ["@property", f"def {self.name}(self) -> {read}: ..."]

    def accepted(self) -> str:
        """What the constructor takes for this field."""
        if self.map_value:
            return f"Mapping[str, {self.map_value}]"
        if self.repeated:
            return f"Iterable[{self.type}]"
        return "Struct | Mapping[str, object]" if self.is_struct else self.type
