"""A small HTTP server of h11 and threads, so that the right worker is like no framework's."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import h11

_READ_BYTES = 65_536
# A client that goes on sending after its answer is listened to for so long, because closing on
# unread bytes would take the answer away from it.
_LINGER_SECONDS = 0.5
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Reply:
    """A response."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)


def json_reply(status: int, value: Any) -> Reply:
    """A response with a JSON value in ASCII."""
    return Reply(status, json.dumps(value).encode("ascii"))


class UnreadableError(Exception):
    """The body broke off, or its framing is wrong."""


class LateError(Exception):
    """The deadline has passed."""


class Arrival:
    """One request on its socket. started: when its headers had arrived (monotonic)."""

    def __init__(
        self, connected: socket.socket, parser: h11.Connection, request: h11.Request
    ) -> None:
        self._socket = connected
        self._parser = parser
        self.method = request.method.decode("ascii")
        self.path = request.target.decode("ascii")
        self.headers = {
            name.decode("ascii"): value.decode("latin-1") for name, value in request.headers
        }
        self.started = time.monotonic()

    def parts(self, deadline: float) -> Iterator[bytes]:
        """The body as it comes. Raises UnreadableError and LateError."""
        while True:
            try:
                event = self._parser.next_event()
            except h11.RemoteProtocolError as error:
                raise UnreadableError from error
            if event is h11.NEED_DATA:
                self._parser.receive_data(self._read(deadline))
            elif isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return
            else:
                raise UnreadableError

    def _read(self, deadline: float) -> bytes:
        rest = deadline - time.monotonic()
        if rest <= 0:
            raise LateError
        self._socket.settimeout(rest)
        try:
            return self._socket.recv(_READ_BYTES)
        except TimeoutError as error:
            raise LateError from error
        except OSError as error:
            raise UnreadableError from error

    def gone(self) -> bool:
        """Whether the client has closed its connection."""
        readable, _, _ = select.select([self._socket], [], [], 0)
        if not readable:
            return False
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def wait(self, done: threading.Event, deadline: float) -> bool:
        """Whether `done` was set before the deadline, with the client still there. Raises
        LateError when it was not.
        """
        while not done.wait(min(_POLL_SECONDS, max(0.0, deadline - time.monotonic()))):
            if self.gone():
                return False
            if time.monotonic() >= deadline:
                raise LateError
        return True


class Application(Protocol):
    """What answers requests; None is for a client that has gone."""

    def answer(self, arrival: Arrival) -> Reply | None: ...


@contextmanager
def served(application: Application) -> Iterator[str]:
    """The application listens on a free loopback port while the block runs; yields its origin."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads: list[threading.Thread] = []
        accepting = threading.Thread(
            target=_accept, args=(listener, application, threads), daemon=True
        )
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()


def _accept(
    listener: socket.socket, application: Application, threads: list[threading.Thread]
) -> None:
    while True:
        try:
            connected, _ = listener.accept()
        except OSError:
            return
        thread = threading.Thread(target=_serve, args=(connected, application), daemon=True)
        threads[:] = [each for each in threads if each.is_alive()]
        threads.append(thread)
        thread.start()


def _serve(connected: socket.socket, application: Application) -> None:
    """One request on a connection of its own."""
    with connected, contextlib.suppress(OSError):
        parser = h11.Connection(h11.SERVER)
        connected.settimeout(5.0)
        while True:
            try:
                event = parser.next_event()
            except h11.RemoteProtocolError:
                return
            if event is not h11.NEED_DATA:
                break
            parser.receive_data(connected.recv(_READ_BYTES))
        if isinstance(event, h11.Request):
            reply = application.answer(Arrival(connected, parser, event))
            if reply is not None:
                _send(connected, reply)


def _send(connected: socket.socket, reply: Reply) -> None:
    # A parser of its own: after a broken request the first one sends nothing more.
    writer = h11.Connection(h11.SERVER)
    writer.receive_data(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    writer.next_event()
    headers = [*reply.headers, ("content-length", str(len(reply.body))), ("connection", "close")]
    data = writer.send(h11.Response(status_code=reply.status, headers=headers)) or b""
    data += writer.send(h11.Data(data=reply.body)) or b""
    connected.settimeout(5.0)
    connected.sendall(data)
    connected.shutdown(socket.SHUT_WR)
    end = time.monotonic() + _LINGER_SECONDS
    while (rest := end - time.monotonic()) > 0:
        connected.settimeout(rest)
        if not connected.recv(_READ_BYTES):
            return
