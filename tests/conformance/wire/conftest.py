"""Real gRPC servers and listeners for the wire client, started and ended around each test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme

from conformance.wire.connection import Connection
from conformance.wire.target import Target
from oe_wire.services import handlers
from tests.conformance.wire.servers import Serve

# Far above what anything here takes: reached only when a test is going to fail.
LONG = 20.0


@dataclass
class Engine:
    """Servicer for any service: an RPC exists when `answers` has a function of its name."""

    answers: Mapping[str, Callable[[Any, grpc.ServicerContext], Any]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Callable[[Any, grpc.ServicerContext], Any]:
        if name not in self.answers:
            raise AttributeError(name)
        return self.answers[name]


class RawHandler(grpc.GenericRpcHandler):
    """Serves whole paths with bytes in and out, as streams."""

    def __init__(self, paths: Mapping[str, Callable[[bytes, grpc.ServicerContext], Any]]) -> None:
        self.paths = paths

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        answer = self.paths.get(details.method)
        return None if answer is None else grpc.unary_stream_rpc_method_handler(answer)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start a server; returns its address as `parse_address` gives it.

    services: RPC functions by service; paths: bytes functions by path; tls: server credentials;
    listen: where, a free port of 127.0.0.1 by default.
    """
    servers: list[grpc.Server] = []

    def start(
        services: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        paths: Mapping[str, Any] | None = None,
        tls: grpc.ServerCredentials | None = None,
        listen: str = "127.0.0.1:0",
    ) -> str:
        server = grpc.server(
            futures.ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", -1)]
        )
        bound = [
            handlers(f"openengine.v1.{name}", Engine(answers))
            for name, answers in (services or {}).items()
        ]
        server.add_generic_rpc_handlers((*bound, RawHandler(paths or {})))
        port = server.add_secure_port(listen, tls) if tls else server.add_insecure_port(listen)
        server.start()
        servers.append(server)
        return listen if listen.startswith("unix:") else f"dns:///127.0.0.1:{port}"

    yield start
    for server in servers:
        server.stop(0).wait(LONG)


@pytest.fixture
def connect() -> Iterator[Callable[..., Connection]]:
    """Open a connection to an address or a Target; closed after the test."""
    opened: list[Connection] = []

    def open_connection(where: str | Target, **routes: Any) -> Connection:
        target = where if isinstance(where, Target) else Target(where)
        opened.append(Connection(target, **routes))
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.close()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """A certificate authority of this test session."""
    return trustme.CA()


@pytest.fixture(scope="session")
def server_tls(authority: trustme.CA) -> grpc.ServerCredentials:
    """Server credentials for `localhost`."""
    return grpc.ssl_server_credentials([_pair(authority.issue_cert("localhost"))])


@pytest.fixture(scope="session")
def mutual_tls(authority: trustme.CA) -> grpc.ServerCredentials:
    """Server credentials for `localhost` and `engine.invalid`, a name that resolves nowhere, that
    demand a client certificate.
    """
    return grpc.ssl_server_credentials(
        [_pair(authority.issue_cert("localhost", "engine.invalid"))],
        authority.cert_pem.bytes(),
        require_client_auth=True,
    )


def _pair(leaf: trustme.LeafCert) -> tuple[bytes, bytes]:
    return leaf.private_key_pem.bytes(), leaf.cert_chain_pems[0].bytes()


@pytest.fixture
def silent() -> Iterator[str]:
    """Address of a listener whose connections are taken by the kernel and never answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"dns:///127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def closing() -> Iterator[str]:
    """Address of a listener that closes every connection at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            while True:
                try:
                    listener.accept()[0].close()
                except OSError:
                    return

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        yield f"dns:///127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(LONG)


@pytest.fixture
def refused() -> str:
    """Address of a port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"dns:///127.0.0.1:{listener.getsockname()[1]}"


class _Http(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Nothing on the terminal of a test run."""


@pytest.fixture
def http_server() -> Iterator[str]:
    """Address of an HTTP/1 server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Http)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"dns:///127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(LONG)
