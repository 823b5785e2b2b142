from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import grpc
import pytest

from conformance.errors import HarnessError
from conformance.wire.connection import Connection
from conformance.wire.live_call import UNPARSABLE
from conformance.wire.raw import raw_call
from conformance.wire.target import Target
from conformance.wire.transcript import ActionKind, Origin
from oe_wire import v1
from oe_wire.services import METHODS

GENERATE = METHODS["openengine.v1.Inference/Generate"]
SERVER_INFO = METHODS["openengine.v1.Control/GetServerInfo"]
LONG = 20.0

Serve = Callable[..., str]
Connect = Callable[..., Connection]


def tokens(*ids: int) -> v1.GenerateResponse:
    infos = [v1.TokenInfo(token_id=number) for number in ids]
    return v1.GenerateResponse(token=v1.TokenOutput(tokens=infos))


class Endless:
    """Generate that sends one message and then waits until the client is gone."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def __call__(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        # grpcio drops a generator whose call has ended: nothing after the yield is sure to run.
        context.add_callback(self.ended.set)
        yield tokens(1)
        self.ended.wait(LONG)


def failing(code: grpc.StatusCode, details: str, *trailers: tuple[str, str | bytes]) -> Any:
    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        context.set_trailing_metadata(trailers)
        context.abort(code, details)

    return answer


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


def test_metadata_reaches_the_engine_and_credentials_stay_out(
    serve: Serve, connect: Connect
) -> None:
    """The target's metadata is sent with a call's own, and only the latter is recorded."""
    seen: list[tuple[str, str | bytes]] = []

    def info(request: Any, context: grpc.ServicerContext) -> v1.ServerInfo:
        seen.extend((str(key), value) for key, value in context.invocation_metadata())
        return v1.ServerInfo()

    address = serve({"Control": {"GetServerInfo": info}})
    connection = connect(Target(address, metadata=(("authorization", "s3cret"),)))
    transcript = connection.call(
        SERVER_INFO, v1.GetServerInfoRequest(), metadata=(("p", "1"), ("p", "2")), deadline=LONG
    )
    assert [pair for pair in seen if pair[0] != "user-agent"] == [
        ("authorization", "s3cret"),
        ("p", "1"),
        ("p", "2"),
    ]
    assert "s3cret" not in repr(transcript)


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
    server = grpc.server(_pool())
    server.add_generic_rpc_handlers((_Paths({GENERATE.path: Endless()}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    proxy = _Proxy(port)
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


def test_cancel_reaches_the_engine(serve: Serve, connect: Connect) -> None:
    """A cancelled call ends at once, says so, and ends at the engine too."""
    engine = Endless()
    connection = connect(serve({"Inference": {"Generate": engine}}))
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_event(timeout=LONG)
    assert not live.done
    live.cancel()
    live.cancel()
    transcript = live.finish()
    assert transcript.ending.code is grpc.StatusCode.CANCELLED
    assert transcript.ending.origin is Origin.LOCAL
    assert [action.kind for action in transcript.actions] == [ActionKind.CANCEL]
    assert transcript.messages == (tokens(1),)
    assert engine.ended.wait(LONG)


def test_cancelled_by_the_engine_is_remote(serve: Serve, connect: Connect) -> None:
    """CANCELLED that nobody asked for here came from the engine."""
    answer = failing(grpc.StatusCode.CANCELLED, "Locally cancelled by application!")
    connection = connect(serve({"Control": {"GetServerInfo": answer}}))
    transcript = connection.call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=LONG)
    assert transcript.rejected


def test_cancel_after_the_end_changes_nothing(serve: Serve, connect: Connect) -> None:
    """A call that has ended stays as it was."""
    connection = connect(serve({"Inference": {"Generate": lambda request, context: iter(())}}))
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_end(LONG)
    live.cancel()
    assert live.finish().undisturbed


def test_finish_with_a_limit_cancels(serve: Serve, connect: Connect) -> None:
    """A call that outlives the limit of `finish` is cancelled rather than left running."""
    engine = Endless()
    connection = connect(serve({"Inference": {"Generate": engine}}))
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_event(timeout=LONG)
    transcript = live.finish(timeout=0)
    assert transcript.acted(ActionKind.CANCEL)
    assert engine.ended.wait(LONG)


def test_wait_event(serve: Serve, connect: Connect) -> None:
    """True at the awaited count, False when the call ends or the time runs out before."""
    connection = connect(
        serve({"Inference": {"Generate": lambda request, context: iter([tokens(1), tokens(2)])}})
    )
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_event(2, timeout=LONG)
    assert not live.wait_event(3, timeout=LONG)
    assert len(live.events) == 2
    endless = connect(serve({"Inference": {"Generate": Endless()}}))
    live = endless.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert not live.wait_event(2, timeout=0)
    live.cancel()
    live.finish()


def test_act_is_recorded_in_order(serve: Serve, connect: Connect) -> None:
    """What the client did from aside appears among the actions with its time."""
    connection = connect(serve({"Inference": {"Generate": Endless()}}))
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_event(timeout=LONG)
    live.act(ActionKind.ABORT)
    live.cancel()
    transcript = live.finish()
    assert [action.kind for action in transcript.actions] == [ActionKind.ABORT, ActionKind.CANCEL]
    seconds = [action.seconds for action in transcript.actions]
    assert transcript.events[0].seconds <= seconds[0] <= seconds[1]


@pytest.mark.parametrize("pair", [("Upper", "x"), ("a", "é"), ("a", "x\n")])
def test_metadata_that_grpc_refuses_is_local(
    serve: Serve, connect: Connect, pair: tuple[str, str]
) -> None:
    """The client library's INTERNAL is not blamed on the engine."""
    connection = connect(serve({"Inference": {"Generate": lambda request, context: iter(())}}))
    transcript = connection.call(GENERATE, v1.GenerateRequest(), metadata=(pair,), deadline=LONG)
    assert transcript.ending.code is grpc.StatusCode.INTERNAL
    assert transcript.ending.origin is Origin.LOCAL


@pytest.mark.parametrize("pair", [("a-bin", "text"), ("a", b"bytes")])
def test_metadata_of_the_wrong_type(connect: Connect, pair: tuple[str, str | bytes]) -> None:
    """A check that mixes up text and binary metadata is a defect of the suite."""
    with pytest.raises(HarnessError, match=f"metadata '{pair[0]}'"):
        connect("dns:///127.0.0.1:1").start(
            GENERATE, v1.GenerateRequest(), metadata=(pair,), deadline=1
        )


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


def test_close_ends_running_calls_at_the_engine(serve: Serve) -> None:
    """Closing a connection leaves nothing running on the target."""
    engine = Endless()
    connection = Connection(Target(serve({"Inference": {"Generate": engine}})))
    live = connection.start(GENERATE, v1.GenerateRequest(), deadline=LONG)
    assert live.wait_event(timeout=LONG)
    connection.close()
    assert live.done
    assert engine.ended.wait(LONG)
    assert live.finish().acted(ActionKind.CANCEL)


def test_cancel_all_from_another_thread(serve: Serve, connect: Connect) -> None:
    """Ctrl-C ends calls that other threads wait for, and later calls send nothing."""
    started: list[str] = []

    def generate(request: v1.GenerateRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        started.append(request.request_id)
        gone = threading.Event()
        context.add_callback(gone.set)
        yield tokens(1)
        gone.wait(LONG)

    connection = connect(serve({"Inference": {"Generate": generate}}))
    calls = [
        connection.start(GENERATE, v1.GenerateRequest(request_id=str(n)), deadline=LONG)
        for n in range(3)
    ]
    assert all(live.wait_event(timeout=LONG) for live in calls)
    stopper = threading.Thread(target=connection.cancel_all)
    stopper.start()
    endings = [live.finish().ending for live in calls]
    stopper.join(LONG)
    assert {ending.code for ending in endings} == {grpc.StatusCode.CANCELLED}
    late = connection.call(GENERATE, v1.GenerateRequest(request_id="late"), deadline=LONG)
    assert late.ending.code is grpc.StatusCode.CANCELLED
    assert late.ending.origin is Origin.LOCAL
    assert late.acted(ActionKind.CANCEL)
    assert sorted(started) == ["0", "1", "2"]


def test_many_calls_at_once_leave_no_thread(serve: Serve) -> None:
    """Calls from several threads on one connection keep apart, and their readers end."""

    def generate(request: v1.GenerateRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        for _ in range(5):
            yield v1.GenerateResponse(request_id=request.request_id)

    connection = Connection(Target(serve({"Inference": {"Generate": generate}})))

    def ask(number: int) -> set[str]:
        request = v1.GenerateRequest(request_id=str(number))
        messages = connection.call(GENERATE, request, deadline=LONG).messages
        assert len(messages) == 5
        return {m.request_id for m in messages if isinstance(m, v1.GenerateResponse)}

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(100))) == [{str(number)} for number in range(100)]
    connection.close()
    for thread in threading.enumerate():
        if thread.name.startswith("call "):
            thread.join(LONG)
            assert not thread.is_alive()


def test_control_listener_and_routes(serve: Serve, connect: Connect) -> None:
    """The data plane goes to the target or its route, everything else to the control listener."""

    def named(name: str) -> Any:
        return {
            "Control": {"GetServerInfo": lambda r, c: v1.ServerInfo(engine_name=name)},
            "Inference": {"Generate": lambda r, c: iter([v1.GenerateResponse(request_id=name)])},
        }

    main, control, other = (serve(named(name)) for name in ("main", "control", "other"))
    routes = {"openengine.v1.Inference": other, "openengine.v1.Control": other}

    def names(target: Target, routes: dict[str, str]) -> tuple[str, str]:
        connection = connect(target, routes=routes)
        info = connection.call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=LONG).messages[0]
        answer = connection.call(GENERATE, v1.GenerateRequest(), deadline=LONG).messages[0]
        assert isinstance(info, v1.ServerInfo)
        assert isinstance(answer, v1.GenerateResponse)
        return info.engine_name, answer.request_id

    assert names(Target(main), {}) == ("main", "main")
    assert names(Target(main, control=control), {}) == ("control", "main")
    assert names(Target(main), routes) == ("other", "other")
    assert names(Target(main, control=control), routes) == ("control", "other")


@pytest.mark.parametrize(
    ("method", "listener"),
    [
        ("openengine.v1.Inference/Generate", "data"),
        ("openengine.v1.OpenEngineTasks/Embed", "data"),
        ("openengine.v1.OpenEngineEncoder/Encode", "data"),
        ("openengine.v1.OpenEngineSessions/GenerateTurn", "data"),
        ("openengine.v1.OpenEngineKv/Prefill", "data"),
        ("openengine.v1.OpenEngineOrchestration/Execute", "data"),
        ("openengine.v1.Control/Abort", "control"),
        ("openengine.v1.OpenEngineSessions/OpenSession", "control"),
        ("openengine.v1.OpenEngineKv/ReleaseKvSession", "control"),
        ("grpc.health.v1.Health/Check", "control"),
    ],
)
def test_data_plane(method: str, listener: str, connect: Connect) -> None:
    """The data plane is the list of OE-CORE-META-011."""
    connection = connect(Target("data", control="control"))
    assert connection.address_of(METHODS[method]) == listener


def test_unix_socket(serve: Serve, connect: Connect, tmp_path: Any) -> None:
    """A Unix socket is a target like any other."""
    address = serve(
        {"Control": {"GetServerInfo": lambda r, c: v1.ServerInfo()}},
        listen=f"unix:{tmp_path}/engine.sock",
    )
    assert connect(address).call(SERVER_INFO, v1.GetServerInfoRequest(), deadline=LONG).ending.ok


def test_raw_bytes_that_do_not_parse(serve: Serve, connect: Connect) -> None:
    """Malformed bytes are sent as they are; the transcript has no request and the status."""
    connection = connect(serve({"Inference": {"Generate": lambda request, context: iter(())}}))
    transcript = raw_call(connection, GENERATE, [b"\x0a\xff"], deadline=LONG)
    assert transcript.request is None
    assert transcript.request_bytes == b"\x0a\xff"
    assert transcript.rejected


def test_raw_bytes_that_parse(serve: Serve, connect: Connect) -> None:
    """Bytes that are a request after all have it in the transcript."""
    data = v1.GenerateRequest(request_id="r").SerializeToString()
    connection = connect(serve({"Inference": {"Generate": lambda request, context: iter(())}}))
    transcript = raw_call(connection, GENERATE, [data], deadline=LONG)
    assert transcript.request == v1.GenerateRequest(request_id="r")
    assert transcript.ending.ok


@pytest.mark.parametrize("count", [0, 2])
def test_raw_message_counts(serve: Serve, connect: Connect, count: int) -> None:
    """No message and two messages can be sent where a right client sends one."""
    seen: list[int] = []

    def stream(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        seen.append(len(list(messages)))
        yield b""

    server = grpc.server(_pool())
    server.add_generic_rpc_handlers((_Paths({}, streams={GENERATE.path: stream}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    connection = connect(f"dns:///127.0.0.1:{port}")
    transcript = raw_call(connection, GENERATE, [b"\x0a\x01a"] * count, deadline=LONG)
    server.stop(0).wait(LONG)
    assert seen == [count]
    assert transcript.request is None
    assert transcript.request_bytes == b"\x0a\x01a" * count
    assert transcript.ending.ok


def test_raw_call_has_its_own_deadline(silent: str, connect: Connect) -> None:
    """A server that never answers costs the deadline and no more."""
    transcript = raw_call(connect(silent), GENERATE, [], deadline=0.1)
    assert transcript.ending.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert transcript.ending.origin is Origin.LOCAL


def _pool() -> Any:
    return ThreadPoolExecutor(4)


class _Paths(grpc.GenericRpcHandler):
    def __init__(self, unary: dict[str, Any], streams: dict[str, Any] | None = None) -> None:
        self.unary, self.streams = unary, streams or {}

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        if details.method in self.streams:
            return grpc.stream_stream_rpc_method_handler(self.streams[details.method])
        if details.method in self.unary:
            return grpc.unary_stream_rpc_method_handler(
                self.unary[details.method],
                response_serializer=v1.GenerateResponse.SerializeToString,
            )
        return None


class _Proxy:
    """Forwards one TCP connection until it is cut: a network that fails."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._upstream = port
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(("127.0.0.1", self._upstream))
        self._sockets += [client, server]
        for source, sink in ((client, server), (server, client)):
            thread = threading.Thread(target=self._copy, args=(source, sink), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)

    def cut(self) -> None:
        """End both connections and refuse new ones."""
        self._listener.close()
        for connection in self._sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(LONG)
        for connection in self._sockets:
            connection.close()
