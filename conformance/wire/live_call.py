"""A call that is running: a reader thread collects its messages, the owner watches and acts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, cast

import grpc
from google.protobuf.message import DecodeError, Message

from conformance.errors import HarnessError
from conformance.wire.bad_text import bad_text
from conformance.wire.origin import origin_of
from conformance.wire.transcript import (
    Action,
    ActionKind,
    Ending,
    Event,
    Metadata,
    Origin,
    Transcript,
)
from oe_wire.services import Method

# Starts the details of a call that was ended because a response message does not parse.
UNPARSABLE = "unparsable response"
# Seconds in which the gRPC library must end a call whose deadline has passed or that is cancelled.
GRACE = 10.0
# A runaway stream may cost this much memory, not the whole machine's; a response with logprobs of
# a whole vocabulary is near 1 MB.
MAX_BYTES = 1 << 30
MAX_MESSAGES = 200_000


class GrpcCall(Protocol):
    """The part of grpcio's response iterators that is used here."""

    def __iter__(self) -> Iterator[bytes]: ...
    def cancel(self) -> Any: ...
    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What a call sends: its transcript's first half. `request` is None when the bytes do not
    parse; `metadata` leaves out the target's credentials. `deadline` in seconds.
    """

    method: Method
    request: Message | None
    request_bytes: bytes
    metadata: Metadata
    deadline: float


class LiveCall:
    """One running call. Its methods may be used from any thread.

    A response that does not parse ends the call with INTERNAL and details that begin with
    `UNPARSABLE`; the origin is REMOTE, since the peer sent those bytes. A stream above
    MAX_MESSAGES or MAX_BYTES ends with RESOURCE_EXHAUSTED, origin LOCAL.
    """

    def __init__(self, outgoing: Outgoing, begin: Callable[[], GrpcCall] | None) -> None:
        """Start the call with `begin`; None makes one that was cancelled before it began."""
        self._outgoing = outgoing
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._actions: list[Action] = []
        self._ending: Ending | None = None
        self._cancelled = False
        self._fault: Ending | None = None
        self._started = time.monotonic()
        if begin is None:
            self._cancelled = True
            self._actions.append(Action(0.0, ActionKind.CANCEL))
            self._ending = Ending(
                0.0, grpc.StatusCode.CANCELLED, "connection is closed", Origin.LOCAL
            )
            return
        self._call = begin()
        name = f"call {outgoing.method.full_name}"
        threading.Thread(target=self._read, name=name, daemon=True).start()

    @property
    def events(self) -> tuple[Event, ...]:
        """The messages so far."""
        with self._changed:
            return tuple(self._events)

    @property
    def done(self) -> bool:
        """Whether the call has ended."""
        with self._changed:
            return self._ending is not None

    @property
    def elapsed(self) -> float:
        """Seconds since the start of the call."""
        return time.monotonic() - self._started

    def wait_event(self, count: int = 1, timeout: float | None = None) -> bool:
        """Wait until `count` messages have arrived in all; False when the call ended or `timeout`
        seconds (default: the rest of the deadline) passed before.
        """
        limit = self._rest() if timeout is None else timeout
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._events) >= count or self._ending is not None, limit
            )
            return len(self._events) >= count

    def act(self, kind: ActionKind) -> None:
        """Note something that the client did to this call from aside, such as an Abort."""
        with self._changed:
            self._actions.append(Action(self.elapsed, kind))

    def cancel(self) -> None:
        """Note CANCEL and cancel the call; nothing happens when it has ended."""
        with self._changed:
            if self._ending is not None:
                return
            if not self._cancelled:
                self._actions.append(Action(self.elapsed, ActionKind.CANCEL))
            self._cancelled = True
        self._call.cancel()

    def wait_end(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the end; whether it came."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ending is not None, timeout)

    def finish(self, timeout: float | None = None) -> Transcript:
        """Wait for the end, at most `timeout` seconds (default: until the deadline); then the
        call is cancelled. Raises HarnessError when even that does not end it.
        """
        limit = self._rest() + GRACE if timeout is None else timeout
        if not self.wait_end(limit):
            self.cancel()
            if not self.wait_end(GRACE):
                raise HarnessError(
                    f"{self._outgoing.method.full_name}: cancelled {GRACE} s ago and still running"
                )
        return self._transcript()

    def _transcript(self) -> Transcript:
        out = self._outgoing
        with self._changed:
            return Transcript(
                method=out.method.full_name,
                request=out.request,
                request_bytes=out.request_bytes,
                metadata=out.metadata,
                events=tuple(self._events),
                ending=cast(Ending, self._ending),
                actions=tuple(sorted(self._actions, key=lambda action: action.seconds)),
                deadline=out.deadline,
            )

    def _rest(self) -> float:
        return max(0.0, self._outgoing.deadline - self.elapsed)

    def _read(self) -> None:
        """Body of the reader thread."""
        # A bad end raises; its status is read below in the same way as after a good one.
        with suppress(grpc.RpcError):
            self._read_messages()
        ending = self._fault or self._status()
        with self._changed:
            if (
                ending.code is grpc.StatusCode.DEADLINE_EXCEEDED
                and ending.origin is Origin.LOCAL
                and not self._cancelled
            ):
                self._actions.append(Action(ending.seconds, ActionKind.DEADLINE))
            self._ending = ending
            self._changed.notify_all()

    def _read_messages(self) -> None:
        total = 0
        for data in self._call:
            seconds = self.elapsed
            total += len(data)
            if total > MAX_BYTES or len(self._events) >= MAX_MESSAGES:
                self._give_up(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"stopped reading after {len(self._events)} messages, {total} bytes",
                    Origin.LOCAL,
                )
                return
            try:
                message = self._outgoing.method.response.FromString(data)
            except DecodeError as error:
                kind = self._outgoing.method.response
                text = bad_text(kind, data)
                why = error if text is None else f"{text} is not valid UTF-8"
                name = kind.DESCRIPTOR.full_name
                self._give_up(
                    grpc.StatusCode.INTERNAL,
                    f"{UNPARSABLE}: message {len(self._events)} is not a {name}: {why}",
                    Origin.REMOTE,
                )
                return
            with self._changed:
                self._events.append(Event(seconds, message))
                self._changed.notify_all()

    def _give_up(self, code: grpc.StatusCode, details: str, origin: Origin) -> None:
        self._fault = Ending(self.elapsed, code, details, origin)
        self._call.cancel()

    def _status(self) -> Ending:
        seconds = self.elapsed
        code, details = self._call.code(), self._call.details() or ""
        origin = origin_of(
            code,
            details,
            seconds=seconds,
            deadline=self._outgoing.deadline,
            cancelled=self._cancelled,
            metadata=self._outgoing.metadata,
        )
        trailers = tuple((key, value) for key, value in self._call.trailing_metadata() or ())
        return Ending(seconds, code, details, origin, trailers)
