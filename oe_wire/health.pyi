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

class HealthCheckRequest(Message):
    service: str
    def __init__(
        self,
        *,
        service: str | None = ...,
    ) -> None: ...

class HealthCheckResponse(Message):
    ServingStatus: EnumTypeWrapper
    UNKNOWN: Final = 0
    SERVING: Final = 1
    NOT_SERVING: Final = 2
    SERVICE_UNKNOWN: Final = 3
    status: int
    def __init__(
        self,
        *,
        status: int | None = ...,
    ) -> None: ...

class HealthListRequest(Message):
    def __init__(self) -> None: ...

class HealthListResponse(Message):
    @property
    def statuses(self) -> MessageMap[str, HealthCheckResponse]: ...
    def __init__(
        self,
        *,
        statuses: Mapping[str, HealthCheckResponse] | None = ...,
    ) -> None: ...
