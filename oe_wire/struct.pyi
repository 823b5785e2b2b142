"""Types of the JSON-like messages; the dictionary and list methods are protobuf's own mixins."""

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Final, Literal, TypeAlias

from google.protobuf.internal.containers import MessageMap, RepeatedCompositeFieldContainer
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

_Json: TypeAlias = (
    bool | float | str | Struct | ListValue | Mapping[str, object] | list[object] | None
)

NullValue: EnumTypeWrapper
NULL_VALUE: Final = 0

class Struct(Message):
    @property
    def fields(self) -> MessageMap[str, Value]: ...
    def __init__(self, *, fields: Mapping[str, Value] | None = ...) -> None: ...
    def __getitem__(self, key: str) -> _Json: ...
    def __setitem__(self, key: str, value: _Json) -> None: ...
    def __delitem__(self, key: str) -> None: ...
    def __contains__(self, item: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def keys(self) -> KeysView[str]: ...
    def values(self) -> ValuesView[_Json]: ...
    def items(self) -> ItemsView[str, _Json]: ...
    def update(self, value: Mapping[str, object]) -> None: ...

class ListValue(Message):
    @property
    def values(self) -> RepeatedCompositeFieldContainer[Value]: ...
    def __init__(self, *, values: Iterable[Value] | None = ...) -> None: ...
    def __getitem__(self, key: int) -> _Json: ...
    def __iter__(self) -> Iterator[_Json]: ...
    def __len__(self) -> int: ...
    def append(self, value: _Json) -> None: ...
    def extend(self, elem_seq: Iterable[_Json]) -> None: ...

class Value(Message):
    null_value: int
    number_value: float
    string_value: str
    bool_value: bool
    @property
    def struct_value(self) -> Struct: ...
    @property
    def list_value(self) -> ListValue: ...
    def __init__(
        self,
        *,
        null_value: int | None = ...,
        number_value: float | None = ...,
        string_value: str | None = ...,
        bool_value: bool | None = ...,
        struct_value: Struct | Mapping[str, object] | None = ...,
        list_value: ListValue | None = ...,
    ) -> None: ...
    def HasField(
        self,
        field_name: Literal[
            "kind",
            "null_value",
            "number_value",
            "string_value",
            "bool_value",
            "struct_value",
            "list_value",
        ],
    ) -> bool: ...
    def WhichOneof(
        self, oneof_group: Literal["kind"]
    ) -> (
        Literal[
            "null_value", "number_value", "string_value", "bool_value", "struct_value", "list_value"
        ]
        | None
    ): ...
