"""A gRPC proxy in front of an engine: forwards every call, and lets one mutant change some.

Calls that no mutant changes pass as bytes, message by message, so that even what does not parse
or is unknown to this revision of the wire reaches the other side as it was sent.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from conformance.errors import HarnessError
from conformance.mutants.mutant import Behaviour, Envelope, Exchange, Mutant, Refused, Relay
from conformance.mutants.reading import dropped
from conformance.wire.slow_call import SLOW_OPTIONS
from conformance.wire.transcript import Metadata
from oe_wire.services import SERVICES, Method

# Keys that gRPC itself adds to every call: forwarding them would set them twice.
_OWN_KEYS = frozenset({"user-agent", "grpc-accept-encoding", "accept-encoding", "te"})
# The engine has its own limits, and two proxies on one port would share its calls at random.
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)]
# A client that stops reading has to hold up the engine, not just the proxy.
_UPSTREAM = (*_OPTIONS, *SLOW_OPTIONS)
_START_SECONDS = 30.0
# What gRPC has under way when a proxy ends is cancelled and gone in milliseconds.
_DRAIN_SECONDS = 10.0
_Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
_Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"


@contextmanager
def proxied(target: str, mutant: Mutant | None) -> Iterator[str]:
    """The address of a proxy in front of the plaintext gRPC target, for as long as the block runs.

    Without a mutant everything is only forwarded. Raises HarnessError when the proxy cannot start.
    """
    proxy = _Proxy(target, mutant)
    proxy.start()
    try:
        yield proxy.address
    finally:
        proxy.stop()


class _Proxy(threading.Thread):
    """The proxy's event loop in a thread of its own; grpc.aio objects never leave it."""

    def __init__(self, target: str, mutant: Mutant | None) -> None:
        super().__init__(name=f"proxy-{mutant.name if mutant else 'plain'}", daemon=True)
        self.address = ""
        self._target = target
        self._behaviour = mutant.behaviour if mutant else {}
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._finish: asyncio.Event | None = None

    def start(self) -> None:
        super().start()
        if not self._ready.wait(_START_SECONDS) or not self.address:
            raise HarnessError(f"the mutant proxy did not start within {_START_SECONDS:.0f} s")

    def stop(self) -> None:
        if self._loop is not None and self._finish is not None:
            self._loop.call_soon_threadsafe(self._finish.set)
        self.join(_START_SECONDS)
        if self.is_alive():
            raise HarnessError(f"the mutant proxy did not stop within {_START_SECONDS:.0f} s")

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._finish = asyncio.get_running_loop(), asyncio.Event()
        server = grpc.aio.server(options=_OPTIONS)
        try:
            async with grpc.aio.insecure_channel(self._target, options=_UPSTREAM) as channel:
                port = server.add_insecure_port("127.0.0.1:0")
                address = f"127.0.0.1:{port}"
                front = _Front(_upstream(channel), self._behaviour, address)
                server.add_generic_rpc_handlers(front.handlers())
                await server.start()
                self.address = address
                self._ready.set()
                await self._finish.wait()
                await server.stop(grace=None)
                await front.close()
            await _drained()
        finally:
            self._ready.set()


async def _drained() -> None:
    """Wait for the other tasks of this loop, most of them gRPC's own.

    All loops of a process share one poller of gRPC. It raises in another proxy's loop when
    something completes that belongs to a closed one, so nothing may be under way any more.
    """
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=_DRAIN_SECONDS)


class _Front:
    """The proxy's side towards clients: answers calls by a mutant's behaviour, else forwards."""

    def __init__(
        self,
        relay: Relay,
        behaviour: Mapping[str, Behaviour],
        address: str,
    ) -> None:
        self._relay = relay
        self._behaviour = behaviour
        self._address = address
        self._state: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """End what still runs beside the calls."""
        for task in tuple(self._tasks):
            await dropped(task)

    def handlers(self) -> list[grpc.GenericRpcHandler[bytes, bytes]]:
        """One handler for each service of the wire; any other RPC is UNIMPLEMENTED."""
        return [
            grpc.method_handlers_generic_handler(
                service, {method.name: self._handler(method) for method in methods}
            )
            for service, methods in SERVICES.items()
        ]

    def _handler(self, method: Method) -> _Handler:
        async def stream(request: bytes, context: _Context) -> AsyncIterator[bytes]:
            async with aclosing(self._answers(method, request, context)) as answers:
                async for data in answers:
                    yield data

        async def unary(request: bytes, context: _Context) -> bytes:
            async with aclosing(self._answers(method, request, context)) as answers:
                # Read to its end, because the trailers come last.
                found = [data async for data in answers]
            if not found:
                raise HarnessError(f"no answer to {method.full_name} to forward")
            return found[0]

        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)

    async def _answers(
        self, method: Method, request: bytes, context: _Context
    ) -> AsyncGenerator[bytes, None]:
        envelope = Envelope()
        deadline = context.time_remaining()
        messages = self._messages(method, request, _sent(context), envelope, deadline)
        started = False
        try:
            async with aclosing(messages):
                async for data in messages:
                    if not started and envelope.headers:
                        await context.send_initial_metadata(envelope.headers)
                    started = True
                    yield data
            context.set_trailing_metadata(envelope.trailers)
        except Refused as refusal:
            await context.abort(refusal.code, refusal.details, refusal.trailers)

    async def _messages(
        self,
        method: Method,
        request: bytes,
        metadata: Metadata,
        envelope: Envelope,
        deadline: float | None,
    ) -> AsyncGenerator[bytes, None]:
        behaviour = self._behaviour.get(method.full_name)
        parsed = _parsed(method, request) if behaviour is not None else None
        if behaviour is None or parsed is None:
            async with aclosing(self._relay(method, request, metadata, envelope)) as answers:
                async for data in answers:
                    yield data
            return
        exchange = Exchange(
            method, parsed, metadata, self._relay, self._state, self._address, envelope
        )
        exchange.deadline, exchange.tasks = deadline, self._tasks
        try:
            async with aclosing(behaviour(exchange)) as changed:
                async for message in changed:
                    yield message.SerializeToString()
        finally:
            await exchange.close()


def _upstream(channel: grpc.aio.Channel) -> Relay:
    """Calls to the engine over `channel`."""

    async def relay(
        method: Method, request: bytes, metadata: Metadata, envelope: Envelope
    ) -> AsyncGenerator[bytes, None]:
        make: Any = channel.unary_stream if method.server_streaming else channel.unary_unary
        # The client's deadline is not passed on: when it strikes, this call is cancelled.
        call = make(method.path)(request, metadata=metadata)
        try:
            if method.server_streaming:
                async for data in call:
                    envelope.headers = _pairs(await call.initial_metadata())
                    yield data
            else:
                data = await call
                envelope.headers = _pairs(await call.initial_metadata())
                yield data
            envelope.trailers = _pairs(await call.trailing_metadata())
        except grpc.aio.AioRpcError as error:
            trailers = _pairs(error.trailing_metadata())
            raise Refused(error.code(), error.details() or "", trailers) from error
        finally:
            # The client left, or the mutant stopped reading: the engine must not go on.
            call.cancel()

    return relay


def _sent(context: _Context) -> Metadata:
    """The client's own metadata."""
    return tuple(
        (key, value)
        for key, value in _pairs(context.invocation_metadata())
        if key not in _OWN_KEYS and not key.startswith("grpc-")
    )


def _parsed(method: Method, request: bytes) -> Any:
    """The request, or None for bytes that are none: the engine is to say so itself."""
    try:
        return method.request.FromString(request)
    except DecodeError:
        return None


def _pairs(metadata: Any) -> Metadata:
    """GRPC metadata as plain pairs; None, which gRPC gives for no metadata, is empty."""
    return tuple((str(key), value) for key, value in metadata or ())
