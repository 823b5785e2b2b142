"""RPCs as data, and servicers behind real servers."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import grpc.aio
import pytest

from oe_wire import health, v1
from oe_wire.services import METHODS, SERVICES, Method, handlers

GENERATE = METHODS["openengine.v1.Inference/Generate"]
GET_MODEL_INFO = METHODS["openengine.v1.OpenEngineDiscovery/GetModelInfo"]
GET_ENGINE_INFO = METHODS["openengine.v1.OpenEngineDiscovery/GetEngineInfo"]
LIMIT_S = 10.0


class SyncInference:
    """Streams two events."""

    def Generate(
        self, request: v1.GenerateRequest, context: grpc.ServicerContext
    ) -> Iterator[v1.GenerateResponse]:
        for text in ("a", "b"):
            yield v1.GenerateResponse(
                request_id=request.request_id, token=v1.TokenOutput(output_index=0, text=text)
            )


class SyncDiscovery:
    """Serves one of the three discovery RPCs."""

    def GetModelInfo(
        self, request: v1.GetModelInfoRequest, context: grpc.ServicerContext
    ) -> v1.ModelInfo:
        return v1.ModelInfo(model_id=request.model)


class AioInference:
    """Streams one event."""

    async def Generate(
        self, request: v1.GenerateRequest, context: Any
    ) -> AsyncIterator[v1.GenerateResponse]:
        yield v1.GenerateResponse(request_id=request.request_id)


class AioDiscovery:
    """Serves one of the three discovery RPCs."""

    async def GetModelInfo(self, request: v1.GetModelInfoRequest, context: Any) -> v1.ModelInfo:
        return v1.ModelInfo(model_id=request.model)


def unary(channel: Any, method: Method) -> Any:
    """The callable of a unary method on a sync or aio channel."""
    return channel.unary_unary(
        method.path, method.request.SerializeToString, method.response.FromString
    )


def streaming(channel: Any, method: Method) -> Any:
    """The callable of a server-streaming method on a sync or aio channel."""
    return channel.unary_stream(
        method.path, method.request.SerializeToString, method.response.FromString
    )


def test_method_data() -> None:
    """A method knows its path, its types and whether its answer is a stream."""
    assert GENERATE.path == "/openengine.v1.Inference/Generate"
    assert GENERATE.full_name == "openengine.v1.Inference/Generate"
    assert (GENERATE.service, GENERATE.name) == ("openengine.v1.Inference", "Generate")
    assert (GENERATE.request, GENERATE.response) == (v1.GenerateRequest, v1.GenerateResponse)
    assert GENERATE.server_streaming
    assert not GET_MODEL_INFO.server_streaming
    watch = METHODS["grpc.health.v1.Health/Watch"]
    assert (watch.request, watch.server_streaming) == (health.HealthCheckRequest, True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        GENERATE.name = "Other"  # type: ignore[misc]


class AioWriting:
    """A stream that writes instead of yielding."""

    async def Generate(self, request: v1.GenerateRequest, context: Any) -> None:
        await context.write(v1.GenerateResponse(request_id=request.request_id))


def test_services_and_methods_agree() -> None:
    """METHODS is SERVICES flattened: 12 services of ours and the standard health service."""
    assert len(SERVICES) == 13
    flat = [method for methods in SERVICES.values() for method in methods]
    assert list(METHODS.values()) == flat
    assert all(method.service == service for service in SERVICES for method in SERVICES[service])


def test_sync_server() -> None:
    """A sync servicer answers what it has; the RPC it lacks is UNIMPLEMENTED."""
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers(
            (
                handlers("openengine.v1.Inference", SyncInference()),
                handlers("openengine.v1.OpenEngineDiscovery", SyncDiscovery()),
            )
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            request = v1.GenerateRequest(request_id="r")
            events = list(streaming(channel, GENERATE)(request, timeout=LIMIT_S))
            info = unary(channel, GET_MODEL_INFO)(
                v1.GetModelInfoRequest(model="m"), timeout=LIMIT_S
            )
            with pytest.raises(grpc.RpcError) as refused:
                unary(channel, GET_ENGINE_INFO)(v1.GetEngineInfoRequest(), timeout=LIMIT_S)
        server.stop(None).wait(LIMIT_S)
    assert [(event.request_id, event.token.text) for event in events] == [("r", "a"), ("r", "b")]
    assert info.model_id == "m"
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


MALFORMED = b"\xff" * 16


def test_malformed_bytes_on_a_sync_server() -> None:
    """INVALID_ARGUMENT, from unary and streaming RPCs alike; the servicer is not called."""
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers(
            (
                handlers("openengine.v1.Inference", SyncInference()),
                handlers("openengine.v1.OpenEngineDiscovery", SyncDiscovery()),
            )
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            for method in (GENERATE, GET_MODEL_INFO):
                with pytest.raises(grpc.RpcError) as refused:
                    list(channel.unary_stream(method.path)(MALFORMED, timeout=LIMIT_S))
                assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
                assert method.request.DESCRIPTOR.full_name in refused.value.details()
        server.stop(None).wait(LIMIT_S)


@pytest.mark.parametrize("inference", [AioInference(), AioWriting()])
def test_malformed_bytes_on_an_aio_server(
    inference: object, caplog: pytest.LogCaptureFixture
) -> None:
    """The same for coroutines and generators, and without a word in the log."""

    async def talk() -> list[grpc.StatusCode]:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(
            (
                handlers("openengine.v1.Inference", inference),
                handlers("openengine.v1.OpenEngineDiscovery", AioDiscovery()),
            )
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                calls = [
                    channel.unary_stream(method.path)(MALFORMED, timeout=LIMIT_S)
                    for method in (GENERATE, GET_MODEL_INFO)
                ]
                return [await call.code() for call in calls]
        finally:
            await server.stop(None)

    assert asyncio.run(talk()) == [grpc.StatusCode.INVALID_ARGUMENT] * 2
    assert caplog.text == ""


def test_aio_server() -> None:
    """An aio servicer answers what it has; the RPC it lacks is UNIMPLEMENTED."""

    async def talk() -> tuple[list[str], str, grpc.StatusCode]:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(
            (
                handlers("openengine.v1.Inference", AioInference()),
                handlers("openengine.v1.OpenEngineDiscovery", AioDiscovery()),
            )
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                request = v1.GenerateRequest(request_id="r")
                call = streaming(channel, GENERATE)(request, timeout=LIMIT_S)
                ids = [event.request_id async for event in call]
                model = v1.GetModelInfoRequest(model="m")
                info = await unary(channel, GET_MODEL_INFO)(model, timeout=LIMIT_S)
                missing = unary(channel, GET_ENGINE_INFO)(
                    v1.GetEngineInfoRequest(), timeout=LIMIT_S
                )
                return ids, info.model_id, await missing.code()
        finally:
            await server.stop(None)

    assert asyncio.run(talk()) == (["r"], "m", grpc.StatusCode.UNIMPLEMENTED)


def test_unknown_service() -> None:
    """A service that the wire lacks is refused with the names that exist."""
    with pytest.raises(ValueError, match=r"'openengine\.v1\.Infer' is not one of .*Inference"):
        handlers("openengine.v1.Infer", SyncInference())


def test_attribute_that_is_no_method() -> None:
    """A servicer whose RPC name holds data is refused, naming the RPC and what was found."""

    class Broken:
        Generate = 3

    with pytest.raises(TypeError, match=r"Broken\.Generate is a int, expected a method"):
        handlers("openengine.v1.Inference", Broken())
