"""One call to an engine as the client saw it: plain data that laws judge without any I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import grpc
from google.protobuf.message import Message

Metadata = tuple[tuple[str, str | bytes], ...]


class Origin(StrEnum):
    """Who produced the status that ended a call.

    gRPC libraries answer many things themselves (a refused connection, an expired deadline,
    invalid metadata); blaming the engine for those would be a false red.
    """

    REMOTE = "remote"
    LOCAL = "local"


class ActionKind(StrEnum):
    """What the client did to a call while it ran. STALL: it stopped reading for a while."""

    CANCEL = "cancel"
    ABORT = "abort"
    DEADLINE = "deadline"
    STALL = "stall"


@dataclass(frozen=True, slots=True)
class Event:
    """One response message. `seconds` is monotonic time since the call started."""

    seconds: float
    message: Message


@dataclass(frozen=True, slots=True)
class Action:
    """Something the client did `seconds` after the call started, e.g. an Abort from aside."""

    seconds: float
    kind: ActionKind


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ended: gRPC status, its text, who produced it, and the trailing metadata."""

    seconds: float
    code: grpc.StatusCode
    details: str
    origin: Origin
    trailers: Metadata = ()

    @property
    def ok(self) -> bool:
        """Whether the status is OK."""
        return self.code is grpc.StatusCode.OK


@dataclass(frozen=True, slots=True)
class Transcript:
    """One finished call.

    method: `package.Service/Rpc`. request: the parsed request, None when the bytes sent do not
    parse. actions: what the client did meanwhile, in order. deadline: seconds allowed, None when
    the call had no deadline. redacted: whether its content was taken out (`without_payload`), so
    that rules which read content cannot judge it. known: what readers have found in it
    (`remembered`), no part of the value.
    """

    method: str
    request: Message | None
    request_bytes: bytes
    metadata: Metadata
    events: tuple[Event, ...]
    ending: Ending
    actions: tuple[Action, ...] = ()
    deadline: float | None = None
    redacted: bool = False
    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The response messages in order of arrival."""
        return tuple(event.message for event in self.events)

    @property
    def accepted(self) -> bool:
        """Whether the engine took the request: a message arrived, or the call ended OK."""
        return bool(self.events) or self.ending.ok

    @property
    def rejected(self) -> bool:
        """Whether the engine itself answered with a non-OK status and no message."""
        return not self.accepted and self.ending.origin is Origin.REMOTE

    @property
    def undisturbed(self) -> bool:
        """Whether the client let the call run and no local status cut it short.

        Laws about complete streams hold only for such calls.
        """
        return not self.actions and self.ending.origin is Origin.REMOTE

    def acted(self, kind: ActionKind) -> bool:
        """Whether the client did `kind` to this call."""
        return any(action.kind is kind for action in self.actions)
