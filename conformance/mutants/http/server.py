"""The right server: routes to answers, answers to bytes. Threads of the standard library.

It stands for a real server that serves the scripted model, and a mutant changes one thing of it.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from conformance.http.json_text import JsonFault, parse_json
from conformance.mutants.http import chat, completions, observing, responses
from conformance.mutants.http.ask import MODEL, Ask
from conformance.mutants.http.generator import BrokenOutputError
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.reply import Event, RefusedError, Reply

Answer = Callable[[Ask], Reply]
_MOST_BYTES = 8 * 1024 * 1024


def models(_: Ask) -> Reply:
    """The model list."""
    listed = {"id": MODEL, "object": "model", "created": 0, "owned_by": "oe-conform"}
    return Reply(body={"object": "list", "data": [listed]})


def health(_: Ask) -> Reply:
    """Always well."""
    return Reply(body={"status": "ok"})


def version(_: Ask) -> Reply:
    """Which build this is."""
    return Reply(body={"build": "fixture-1"})


# Answers by method and path.
ROUTES: Mapping[tuple[str, str], Answer] = {
    ("GET", "/v1/models"): models,
    ("GET", "/health"): health,
    ("GET", "/version"): version,
    ("GET", observing.METRICS): observing.metrics,
    ("GET", observing.CANARY): observing.canary,
    ("POST", chat.PATH): chat.chat,
    ("POST", completions.PATH): completions.completions,
    ("POST", responses.PATH): responses.responses,
}


class Server(ThreadingHTTPServer):
    """One server, right or with a mutant. running: answers that are being written now."""

    daemon_threads = True
    # A check may leave many connections at once.
    request_queue_size = 128

    def __init__(self, mutant: HttpMutant | None, routes: Mapping[tuple[str, str], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mutant = mutant
        self.routes = routes
        self.state: dict[str, Any] = {}
        self.running = 0
        self.lock = threading.Lock()

    @property
    def origin(self) -> str:
        """Where it listens: `http://127.0.0.1:port`."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is no error here."""


@contextmanager
def serving(
    mutant: HttpMutant | None = None, routes: Mapping[tuple[str, str], Answer] = ROUTES
) -> Iterator[Server]:
    """A server for as long as the block runs."""
    server = Server(mutant, routes)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="http fixture"
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A client that says nothing for so long is gone (seconds).
    timeout = 30

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""

    def _answer(self) -> None:
        server = cast(Server, self.server)
        self.close_connection = True
        ask = self._ask(server)
        with server.lock:
            server.running += 1
        try:
            self._write(self._reply(server, ask))
        except OSError:
            pass  # the client has left
        finally:
            with server.lock:
                server.running -= 1

    def _ask(self, server: Server) -> Ask:
        length = self.headers.get("content-length", "0")
        body = self.rfile.read(min(int(length), _MOST_BYTES)) if length.isdigit() else b""
        parsed = parse_json(body)
        json = parsed if isinstance(parsed, dict) else None
        if isinstance(parsed, JsonFault):
            json = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Ask(self.command, self.path, headers, body, json, server.state)

    def _reply(self, server: Server, ask: Ask) -> Reply:
        mutant = server.mutant
        if mutant is not None and mutant.on_ask is not None:
            mutant.on_ask(ask)
        try:
            reply = self._routed(server, ask)
        except RefusedError as refused:
            reply = refused.reply
        except BrokenOutputError as broken:
            reply = RefusedError(500, str(broken), "server_error").reply
        if mutant is not None and mutant.on_reply is not None:
            reply = mutant.on_reply(ask, reply) or reply
        return reply

    @staticmethod
    def _routed(server: Server, ask: Ask) -> Reply:
        answer = server.routes.get((ask.method, ask.path))
        if answer is None:
            known = any(path == ask.path for _, path in server.routes)
            raise RefusedError(405 if known else 404, "no such route", "not_found_error")
        if ask.method == "POST" and ask.json is None:
            raise RefusedError(400, "the body is no JSON object")
        return observing.counting(answer)(ask) if ask.method == "POST" else answer(ask)

    def _write(self, reply: Reply) -> None:
        if reply.stall:
            self._wait_for_leaving()
            return
        if reply.silent:
            return
        self._take_time(reply)
        self.send_response(reply.status)
        self.send_header("content-type", reply.content_type)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.events is None:
            body = reply.body_bytes
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self._chunk(reply.prefix)
        for event in reply.events:
            self._event(reply, event)
        self._chunk(reply.suffix)
        if reply.finish:
            self.wfile.write(b"0\r\n\r\n")

    def _take_time(self, reply: Reply) -> None:
        if reply.pauses is None:
            return
        with contextlib.closing(reply.pauses) as pauses:
            for seconds in pauses:
                if self._left(seconds):
                    raise ConnectionAbortedError("the client has left")

    def _event(self, reply: Reply, event: Event) -> None:
        if self._left():
            raise ConnectionAbortedError("the client has left")
        self._chunk(reply.encode(event))

    def _chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()

    def _left(self, seconds: float = 0) -> bool:
        """Whether the client has left, or leaves within so many seconds."""
        readable, _, _ = select.select([self.connection], [], [], seconds)
        if not readable:
            return False
        with contextlib.suppress(OSError):
            waiting: bytes = self.connection.recv(1, socket.MSG_PEEK)
            return not waiting
        return True

    def _wait_for_leaving(self) -> None:
        """Say nothing until the client has left; a server that hangs must not outlive a test."""
        with contextlib.suppress(OSError):
            self.connection.settimeout(60)
            self.connection.recv(1)
