"""Servers of one test each: what they answer, and a line that is cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import grpc

from conformance.wire.connection import Connection
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


def pool() -> Any:
    return ThreadPoolExecutor(4)


class Paths(grpc.GenericRpcHandler):
    """Unary functions and functions of streams by path."""

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


class CutLine:
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
