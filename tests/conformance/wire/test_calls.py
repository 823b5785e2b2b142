"""Calls to an engine, and how they end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from conformance.wire.live_call import UNPARSABLE
from conformance.wire.transcript import ActionKind, Origin
from oe_wire import v1
from tests.conformance.wire.servers import (
    GENERATE,
    LONG,
    SERVER_INFO,
    Connect,
    CutLine,
    Endless,
    Paths,
    Serve,
    failing,
    pool,
    tokens,
)


def test_finished_stream(serve: Serve, connect: Connect) -> None:
    """A stream gives its messages in order with rising times, its status and its trailers."""

    def generate(request: v1.GenerateRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        context.set_trailing_metadata((("x-text", "t"), ("x-bin", b"\x00\xff")))
        yield tokens(1, 2)
        yield tokens(3)

    connection = connect(serve({"Inference": {"Generate": generate}}))
    request = v1.GenerateRequest(request_id="a", prompt="b")
    metadata = (("k", "v"), ("k", "w"), ("b-bin", b"\x01"))
    transcript = connection.call(GENERATE, request, metadata=metadata, deadline=LONG)
    assert transcript.method == "openengine.v1.Inference/Generate"
    assert transcript.request == request
    assert transcript.request_bytes == request.SerializeToString()
    assert transcript.metadata == metadata
    assert transcript.messages == (tokens(1, 2), tokens(3))
    times = [event.seconds for event in transcript.events] + [transcript.ending.seconds]
    assert times == sorted(times)
    assert transcript.ending.ok
    assert transcript.ending.origin is Origin.REMOTE
    assert transcript.ending.trailers == (("x-text", "t"), ("x-bin", b"\x00\xff"))
    assert transcript.undisturbed
    assert transcript.deadline == LONG


def test_transcript_keeps_the_request_as_sent(serve: Serve, connect: Connect) -> None:
    """Changing the message after the call does not change the transcript."""
    connection = connect(serve({"Inference": {"Generate": lambda request, context: iter(())}}))
    request = v1.GenerateRequest(request_id="before")
    transcript = connection.call(GENERATE, request, deadline=LONG)
    request.request_id = "after"
    assert transcript.request == v1.GenerateRequest(request_id="before")


@pytest.mark.parametrize(
    "code",
    [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK],
)
def test_status_of_the_engine_is_remote(
    serve: Serve, connect: Connect, code: grpc.StatusCode
) -> None:
    """Whatever status the engine sends, even those that gRPC also makes itself, is remote."""
    answer = failing(code, "because", ("openengine-error-code", "X"))
    connection = connect(serve({"Control": {"GetServerInfo": answer}}))
    transcript = connection.call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=LONG)
    assert transcript.ending.code is code
    assert transcript.ending.details == "because"
    assert transcript.ending.origin is Origin.REMOTE
    assert transcript.ending.trailers == (("openengine-error-code", "X"),)
    assert transcript.rejected
    assert transcript.actions == ()


def test_unknown_rpc_is_remote(serve: Serve, connect: Connect) -> None:
    """UNIMPLEMENTED of a server without the service is its answer."""
    transcript = connect(serve({})).call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=LONG)
    assert transcript.ending.code is grpc.StatusCode.UNIMPLEMENTED
    assert transcript.rejected


@pytest.mark.parametrize("listener", ["refused", "closing", "http_server"])
def test_no_server_is_local(
    listener: str, connect: Connect, request: pytest.FixtureRequest
) -> None:
    """UNAVAILABLE for want of a gRPC server is the client's own."""
    connection = connect(request.getfixturevalue(listener))
    transcript = connection.call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=LONG)
    assert transcript.ending.code is grpc.StatusCode.UNAVAILABLE
    assert transcript.ending.origin is Origin.LOCAL


def test_unresolvable_name_is_local(connect: Connect) -> None:
    """A host that does not exist is no answer of an engine."""
    connection = connect("dns:///no-such-engine.invalid:1")
    transcript = connection.call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=LONG)
    assert transcript.ending.origin is Origin.LOCAL


def test_server_that_dies_is_local(serve: Serve, connect: Connect) -> None:
    """A connection lost in the middle of a stream is not a status that the engine sent."""
    server = grpc.server(pool())
    server.add_generic_rpc_handlers((Paths({GENERATE.path: Endless()}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    proxy = CutLine(port)
    live = connect(f"dns:///127.0.0.1:{proxy.port}").start(
        GENERATE, v1.GenerateRequest(), deadline=LONG
    )
    assert live.wait_event(timeout=LONG)
    proxy.cut()
    transcript = live.finish()
    server.stop(0).wait(LONG)
    assert transcript.ending.code is grpc.StatusCode.UNAVAILABLE
    assert transcript.ending.origin is Origin.LOCAL


def test_deadline_is_local_and_noted(serve: Serve, connect: Connect) -> None:
    """An expired deadline is the client's doing, also in the list of actions."""
    engine = Endless()
    connection = connect(serve({"Inference": {"Generate": engine}}))
    transcript = connection.call(GENERATE, v1.GenerateRequest(), deadline=0.3)
    assert transcript.ending.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert transcript.ending.origin is Origin.LOCAL
    assert transcript.acted(ActionKind.DEADLINE)
    assert not transcript.undisturbed
    assert engine.ended.wait(LONG)


def test_silent_listener_is_local(silent: str, connect: Connect) -> None:
    """A listener that says nothing ends in the client's own deadline."""
    transcript = connect(silent).call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=0.2)
    assert transcript.ending.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert transcript.ending.origin is Origin.LOCAL


def test_response_that_does_not_parse(serve: Serve, connect: Connect) -> None:
    """Garbage from the engine ends the call with its fault named; earlier messages stay."""
    chunks = [tokens(1).SerializeToString(), b"\x0a\xff", tokens(2).SerializeToString()]
    connection = connect(serve(paths={GENERATE.path: lambda request, context: iter(chunks)}))
    transcript = connection.call(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert transcript.messages == (tokens(1),)
    assert transcript.ending.code is grpc.StatusCode.INTERNAL
    assert transcript.ending.origin is Origin.REMOTE
    assert transcript.ending.details.startswith(f"{UNPARSABLE}: message 1 is not a openengine.v1.")


def test_runaway_stream_is_stopped(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endless stream is cut at a number of messages, and not as the engine's status."""
    monkeypatch.setattr("conformance.wire.live_call.MAX_MESSAGES", 10)

    def generate(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        while context.is_active():
            yield tokens(1)

    connection = connect(serve({"Inference": {"Generate": generate}}))
    transcript = connection.call(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert len(transcript.events) == 10
    assert transcript.ending.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert transcript.ending.origin is Origin.LOCAL


def test_large_messages_pass_both_ways(serve: Serve, connect: Connect) -> None:
    """The client sets no limit of its own: 5 MiB each way, above gRPC's default of 4."""
    size = 5 << 20

    def generate(request: v1.GenerateRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        yield v1.GenerateResponse(token=v1.TokenOutput(text="x" * len(request.prompt)))

    connection = connect(serve({"Inference": {"Generate": generate}}))
    request = v1.GenerateRequest(prompt="x" * size)
    transcript = connection.call(GENERATE, request, deadline=LONG)
    assert transcript.ending.ok
    message = transcript.messages[0]
    assert isinstance(message, v1.GenerateResponse)
    assert len(message.token.text) == size


def test_two_answers_to_a_unary_call_are_both_seen(serve: Serve, connect: Connect) -> None:
    """A unary RPC that sends two messages shows both."""
    data = v1.ServerInfo(engine_name="e").SerializeToString()
    connection = connect(serve(paths={SERVER_INFO.path: lambda r, c: iter([data, data])}))
    transcript = connection.call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=LONG)
    assert len(transcript.messages) == 2
