from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest

from conformance.mutants.behaviours import edited, refused
from conformance.mutants.mutant import Answers, Exchange, Mutant, Refused
from conformance.mutants.proxy import proxied
from oe_wire import v1
from oe_wire.services import METHODS, handlers

GENERATE = METHODS["openengine.v1.Inference/Generate"]
INFO = METHODS["openengine.v1.OpenEngineDiscovery/GetEngineInfo"]
LIMIT = 20.0
LARGE = 6 * 1024 * 1024


class Engine(threading.Thread):
    """A small engine in a thread of its own, which notes what it sees and does as it is told."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.address = ""
        self.seen: list[tuple[Any, tuple[tuple[str, Any], ...]]] = []
        self.ended = threading.Event()
        self.more = threading.Event()
        self._ready = threading.Event()
        self._finish: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._finish = asyncio.get_running_loop(), asyncio.Event()
        options = [("grpc.max_receive_message_length", -1)]
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers(
            (
                handlers("openengine.v1.Inference", self),
                handlers("openengine.v1.OpenEngineDiscovery", self),
            )
        )
        self.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        self._ready.set()
        await self._finish.wait()
        await server.stop(None)

    def __enter__(self) -> Engine:
        self.start()
        assert self._ready.wait(LIMIT)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._finish is not None
        self.more.set()
        self._loop.call_soon_threadsafe(self._finish.set)
        self.join(LIMIT)

    async def Generate(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self.seen.append((request, tuple(context.invocation_metadata())))
        if request.model == "refuse":
            trailers = (("openengine-error-code", "INVALID_ARGUMENT"), ("raw-bin", b"\x00\xff"))
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "détails: 100 %", trailers)
        if request.model == "cancelled":
            await context.abort(grpc.StatusCode.CANCELLED, "by the engine")
        await context.send_initial_metadata((("engine", "first"),))
        try:
            yield _token(request.request_id, "a")
            if request.model in {"wait", "break"}:
                await asyncio.to_thread(self.more.wait, LIMIT)
            if request.model == "break":
                await context.abort(grpc.StatusCode.DATA_LOSS, "half way")
            if request.model == "large":
                yield _token(request.request_id, "x" * LARGE)
            yield _token(request.request_id, "b")
            context.set_trailing_metadata((("engine", "last"),))
        finally:
            self.ended.set()

    async def GetEngineInfo(self, request: Any, context: Any) -> Any:
        context.set_trailing_metadata((("engine", "unary"),))
        return v1.EngineInfo(engine_name="small")


def _token(request_id: str, text: str) -> v1.GenerateResponse:
    token = v1.TokenOutput(output_index=0, text=text)
    return v1.GenerateResponse(request_id=request_id, token=token)


@pytest.fixture
def engine(caplog: pytest.LogCaptureFixture) -> Iterator[Engine]:
    with Engine() as running:
        yield running
    # Tasks and generators that were left behind complain when they are collected.
    gc.collect()
    assert "never retrieved" not in caplog.text
    assert "was destroyed" not in caplog.text


def _open(channel: grpc.Channel, model: str, metadata: Any = None) -> Any:
    call = channel.unary_stream(
        GENERATE.path,
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=v1.GenerateResponse.FromString,
    )
    request = v1.GenerateRequest(request_id="r", model=model, prompt="p" * 10)
    return call(request, timeout=LIMIT, metadata=metadata)


def _channel(address: str) -> grpc.Channel:
    return grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])


def _info(channel: grpc.Channel) -> tuple[Any, Any]:
    call = channel.unary_unary(
        INFO.path,
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=v1.EngineInfo.FromString,
    )
    return call.with_call(v1.GetEngineInfoRequest(), timeout=LIMIT)


def _mutant(behaviour: Any, method: str = GENERATE.full_name) -> Mutant:
    return Mutant("test", "OE-CORE-GEN-001", "A test.", {method: behaviour})


def test_stream_passes_unchanged(engine: Engine) -> None:
    """Messages, headers, trailers and status arrive as the engine sent them."""
    with proxied(engine.address, None) as front, _channel(front) as channel:
        call = _open(channel, "m", (("openengine-priority", "3"), ("k", "1"), ("k", "2")))
        assert [message.token.text for message in call] == ["a", "b"]
        assert ("engine", "first") in tuple(call.initial_metadata())
        assert ("engine", "last") in tuple(call.trailing_metadata())
        assert call.code() is grpc.StatusCode.OK
    request, metadata = engine.seen[0]
    assert request == v1.GenerateRequest(request_id="r", model="m", prompt="p" * 10)
    assert [pair for pair in metadata if pair[0] == "k"] == [("k", "1"), ("k", "2")]
    assert ("openengine-priority", "3") in metadata


def test_unary_passes_unchanged(engine: Engine) -> None:
    """A unary answer comes with its trailers."""
    with proxied(engine.address, None) as front, _channel(front) as channel:
        message, call = _info(channel)
        assert message.engine_name == "small"
        assert ("engine", "unary") in tuple(call.trailing_metadata())


@pytest.mark.parametrize("mutant", [None, _mutant(edited(lambda _: None))])
def test_refusal_passes_unchanged(engine: Engine, mutant: Mutant | None) -> None:
    """Code, details and trailers of a refusal arrive, binary ones too, with and without mutant."""
    with proxied(engine.address, mutant) as front, _channel(front) as channel:
        call = _open(channel, "refuse")
        with pytest.raises(grpc.RpcError):
            next(call)
        assert call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert call.details() == "détails: 100 %"
        trailers = dict(call.trailing_metadata())
        assert trailers["openengine-error-code"] == "INVALID_ARGUMENT"
        assert trailers["raw-bin"] == b"\x00\xff"


def test_status_cancelled_by_engine_is_no_cancellation(engine: Engine) -> None:
    """An engine that answers CANCELLED is told apart from a client that left."""
    with proxied(engine.address, None) as front, _channel(front) as channel:
        call = _open(channel, "cancelled")
        with pytest.raises(grpc.RpcError):
            next(call)
        assert (call.code(), call.details()) == (grpc.StatusCode.CANCELLED, "by the engine")


def test_status_after_messages_passes(engine: Engine) -> None:
    """A stream that breaks half way gives its messages and then its status."""
    engine.more.set()
    with proxied(engine.address, None) as front, _channel(front) as channel:
        call = _open(channel, "break")
        assert next(call).token.text == "a"
        with pytest.raises(grpc.RpcError):
            next(call)
        assert call.code() is grpc.StatusCode.DATA_LOSS


def test_messages_are_not_held_back(engine: Engine) -> None:
    """The first message is here while the engine has not sent its second."""
    with proxied(engine.address, None) as front, _channel(front) as channel:
        call = _open(channel, "wait")
        assert next(call).token.text == "a"
        assert not engine.ended.is_set()
        engine.more.set()
        assert next(call).token.text == "b"


@pytest.mark.parametrize("mutant", [None, _mutant(edited(lambda _: None))])
def test_client_that_leaves_ends_the_call_to_the_engine(
    engine: Engine, mutant: Mutant | None
) -> None:
    """Cancelling at the proxy cancels at the engine, though the engine has more to send."""
    with proxied(engine.address, mutant) as front, _channel(front) as channel:
        call = _open(channel, "wait")
        next(call)
        call.cancel()
        assert _cancelled_soon(engine)


def test_mutant_that_stops_reading_ends_the_call_to_the_engine(engine: Engine) -> None:
    """A mutant that ends the stream early leaves no call behind."""

    async def first_only(exchange: Exchange) -> Answers:
        async for message in exchange.upstream():
            yield message
            return

    with proxied(engine.address, _mutant(first_only)) as front, _channel(front) as channel:
        assert [message.token.text for message in _open(channel, "wait")] == ["a"]
        assert _cancelled_soon(engine)


def _cancelled_soon(engine: Engine) -> bool:
    """Whether the engine's handler ends while `more`, which it waits for, is not set."""
    return engine.ended.wait(LIMIT) and not engine.more.is_set()


def test_stop_ends_running_calls(engine: Engine) -> None:
    """Leaving the block ends what still runs, on both sides."""
    with ExitStack() as stack:
        front = stack.enter_context(proxied(engine.address, None))
        channel = _channel(front)
        call = _open(channel, "wait")
        next(call)
        stack.close()
        with pytest.raises(grpc.RpcError):
            list(call)
        assert _cancelled_soon(engine)
        channel.close()


def test_large_messages_pass(engine: Engine) -> None:
    """Messages above gRPC's default limit of 4 MiB pass."""
    with proxied(engine.address, None) as front, _channel(front) as channel:
        sizes = [len(message.token.text) for message in _open(channel, "large")]
        assert sizes == [1, LARGE, 1]


def test_unknown_rpc_is_unimplemented(engine: Engine) -> None:
    """An RPC that neither the wire nor the engine knows is UNIMPLEMENTED."""
    with proxied(engine.address, None) as front, _channel(front) as channel:
        for path in ("/openengine.v1.Inference/Nonsense", "/openengine.v1.Control/Abort"):
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(path)(b"", timeout=LIMIT)
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_bytes_that_do_not_parse_reach_the_engine(engine: Engine) -> None:
    """The engine, not the proxy, says what it thinks of a broken request, mutant or not."""
    statuses = []
    for address in (engine.address, None):
        mutant = _mutant(edited(lambda _: None))
        with proxied(engine.address, mutant) as front, _channel(address or front) as channel:
            with pytest.raises(grpc.RpcError) as caught:
                list(channel.unary_stream(GENERATE.path)(b"\xff\xff", timeout=LIMIT))
            statuses.append((caught.value.code(), caught.value.details()))
    assert statuses[0] == statuses[1]
    assert not engine.seen


def test_state_lasts_as_long_as_the_proxy(engine: Engine) -> None:
    """Calls of one proxy share the mutant's state; another proxy starts anew."""

    async def counting(exchange: Exchange) -> Answers:
        exchange.state["calls"] = exchange.state.get("calls", 0) + 1
        async for message in exchange.upstream():
            message.engine_name = f"{exchange.state['calls']} at {exchange.address}"
            yield message

    mutant = _mutant(counting, INFO.full_name)
    for _ in range(2):
        with proxied(engine.address, mutant) as front, _channel(front) as channel:
            names = [_info(channel)[0].engine_name for _ in range(2)]
            assert names == [f"1 at {front}", f"2 at {front}"]


def test_mutant_asks_the_engine_aside(engine: Engine) -> None:
    """A mutant can make a call of its own, and is refused as a client would be."""

    async def asking(exchange: Exchange) -> Answers:
        info = await exchange.ask(INFO, v1.GetEngineInfoRequest())
        exchange.request.model = "refuse"
        with pytest.raises(Refused):
            await exchange.ask(exchange.method, exchange.request)
        yield _token("r", info.engine_name)

    with proxied(engine.address, _mutant(asking)) as front, _channel(front) as channel:
        assert [message.token.text for message in _open(channel, "m")] == ["small"]


def test_mutant_refuses_on_its_own(engine: Engine) -> None:
    """A refusal by a mutant ends the call without asking the engine."""
    refusal = Refused(grpc.StatusCode.NOT_FOUND, "gone", (("why", "test"),))
    with proxied(engine.address, _mutant(refused(refusal))) as front, _channel(front) as channel:
        call = _open(channel, "m")
        with pytest.raises(grpc.RpcError):
            next(call)
        assert (call.code(), call.details()) == (grpc.StatusCode.NOT_FOUND, "gone")
        assert dict(call.trailing_metadata())["why"] == "test"
    assert not engine.seen
