"""A mutant: how one rule is broken in the traffic between a client and a right engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import Message

from conformance.wire.transcript import Metadata
from oe_wire.services import Method


class Refused(Exception):
    """The call ends with this status; raised by the engine behind the proxy or by a mutant."""

    def __init__(
        self, code: grpc.StatusCode, details: str = "refused", trailers: Metadata = ()
    ) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code
        self.details = details
        self.trailers = trailers


@dataclass(slots=True)
class Envelope:
    """What an engine sends around its messages: initial metadata, and trailers of an OK end."""

    headers: Metadata = ()
    trailers: Metadata = ()


Answers: TypeAlias = AsyncGenerator[Any, None]
# One call to the engine in serialized form; the envelope is filled in as the call proceeds.
Relay = Callable[[Method, bytes, Metadata, Envelope], AsyncGenerator[bytes, None]]


@dataclass(slots=True)
class Exchange:
    """One call on its way through the proxy.

    request and metadata may be changed before `upstream` is used. state is the mutant's own and
    lives as long as the proxy. address: `host:port` at which clients reach the proxy. deadline:
    seconds that the client gave the call, None = no limit. tasks: what runs beside all calls of
    the proxy.
    """

    method: Method
    request: Any
    metadata: Metadata
    relay: Relay
    state: dict[str, Any]
    address: str
    envelope: Envelope = field(default_factory=Envelope)
    opened: list[Answers] = field(default_factory=list)
    deadline: float | None = None
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def upstream(self) -> Answers:
        """The engine's answers to the request as it stands. Raises Refused."""
        answers = self._upstream()
        self.opened.append(answers)
        return answers

    async def _upstream(self) -> Answers:
        request = self.request.SerializeToString()
        relayed = self.relay(self.method, request, self.metadata, self.envelope)
        async with aclosing(relayed):
            async for data in relayed:
                yield self.method.response.FromString(data)

    async def ask(self, method: Method, request: Message) -> Any:
        """Make another, unary call to the engine. Raises Refused."""
        relayed = self.relay(method, request.SerializeToString(), (), Envelope())
        async with aclosing(relayed):
            async for data in relayed:
                return method.response.FromString(data)
        raise Refused(grpc.StatusCode.INTERNAL, f"{method.full_name} gave no answer")

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something that may outlive the call; it ends with the proxy at the latest."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def close(self) -> None:
        """End every call to the engine that the mutant did not read to its end."""
        for answers in self.opened:
            await answers.aclose()


Behaviour = Callable[[Exchange], Answers]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken rule.

    requirement: the row whose check must fail. also: rows that the same fault breaks by
    necessity, and that may fail with it. story: the kind of bug it stands for, in one sentence.
    behaviour: by method full name, what replaces plain forwarding.
    """

    name: str
    requirement: str
    story: str
    behaviour: Mapping[str, Behaviour]
    also: frozenset[str] = frozenset()
