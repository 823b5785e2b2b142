"""Sends exact bytes at exact moments, and reads what comes back with h11."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

import h11

from conformance.http.exchange import Chunk, End, Ending, Exchange, Headers, Request
from conformance.http.limits import DEFAULT, Limits
from conformance.http.target import HttpTarget

_READ_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Pause:
    """Send nothing for so many seconds, or until the response has ended."""

    seconds: float


@dataclass(frozen=True, slots=True)
class HalfClose:
    """Say that no more bytes will come, and go on reading."""


@dataclass(frozen=True, slots=True)
class Hangup:
    """Close the connection. reset: as a killed client does."""

    reset: bool = False


Step = bytes | Pause | HalfClose | Hangup


def send_raw(
    target: HttpTarget,
    steps: Iterable[Step],
    *,
    request: Request,
    route: str = "",
    contract: str = "",
    limits: Limits = DEFAULT,
) -> Exchange:
    """Do the steps on a fresh connection while reading the response, until it has ended.

    request: what a report says was asked; `body` is what the steps sent, headers included. Steps
    that are left when the response ends are not done.
    """
    sender = _Sender(target, tuple(steps), limits)
    response, ending = sender.run(request.method)
    sent = Request(request.method, request.path, request.headers, bytes(sender.sent))
    status = None if response.head is None else response.head.status_code
    return Exchange(
        route,
        contract,
        sent,
        ending,
        status,
        "" if response.head is None else f"HTTP/{response.head.http_version.decode()}",
        response.headers,
        response.seconds,
        tuple(response.chunks),
        sender.hung_up,
    )


class _Response:
    """What has been read."""

    def __init__(self) -> None:
        self.head: h11.Response | None = None
        self.headers: Headers = ()
        self.seconds: float | None = None
        self.chunks: list[Chunk] = []


class _Over(Exception):
    """The response has ended."""

    def __init__(self, kind: End, details: str = "") -> None:
        super().__init__(kind.value)
        self.kind = kind
        self.details = details


class _Sender:
    """One connection: a thread that sends, and the caller's that reads."""

    def __init__(self, target: HttpTarget, steps: tuple[Step, ...], limits: Limits) -> None:
        self._target = target
        self._steps = steps
        self._limits = limits
        self._started = time.monotonic()
        self._over = threading.Event()
        self.sent = bytearray()
        self.hung_up: float | None = None

    def run(self, method: str) -> tuple[_Response, Ending]:
        response = _Response()
        try:
            connected = self._connected()
        except OSError as error:
            return response, self._ending(End.CONNECT, type(error).__name__)
        thread = threading.Thread(target=self._send, args=(connected,), daemon=True)
        thread.start()
        try:
            self._receive(connected, method, response)
            ending = self._ending(End.MALFORMED)
        except _Over as over:
            ending = self._ending(over.kind, over.details)
        finally:
            self._over.set()
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)
            thread.join()
            connected.close()
        return response, ending

    def _connected(self) -> socket.socket:
        connected = self._target.dialer(self._target.origin, self._limits.connect_seconds)
        if self._target.origin.scheme == "https":
            context = self._target.tls or ssl.create_default_context()
            return context.wrap_socket(connected, server_hostname=self._target.origin.host)
        return connected

    def _ending(self, kind: End, details: str = "") -> Ending:
        if self.hung_up is not None and kind is not End.COMPLETE:
            kind = End.CANCELLED
        return Ending(self._seconds(), kind, details)

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _send(self, connected: socket.socket) -> None:
        for step in self._steps:
            if self._over.is_set():
                return
            try:
                self._do(connected, step)
            except OSError:
                # The server has closed: what it said before that is what counts.
                return

    def _do(self, connected: socket.socket, step: Step) -> None:
        match step:
            case Pause(seconds):
                self._over.wait(seconds)
            case HalfClose():
                connected.shutdown(socket.SHUT_WR)
            case Hangup(reset):
                self.hung_up = self._seconds()
                if reset:
                    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connected.shutdown(socket.SHUT_RDWR)
            case _:
                connected.sendall(step)
                self.sent += step

    def _receive(self, connected: socket.socket, method: str, response: _Response) -> None:
        parser = h11.Connection(h11.CLIENT)
        # h11 pairs responses with requests; what was really sent is none of its business.
        parser.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        parser.send(h11.EndOfMessage())
        while True:
            try:
                event = parser.next_event()
            except h11.RemoteProtocolError as error:
                closed = "closed" in str(error).lower()
                raise _Over(_cut(response) if closed else End.MALFORMED, "h11") from error
            self._take(event, response, parser, connected)

    def _take(
        self,
        event: object,
        response: _Response,
        parser: h11.Connection,
        connected: socket.socket,
    ) -> None:
        match event:
            case h11.NEED_DATA:
                parser.receive_data(self._read(connected, response))
            case h11.Response():
                response.head = event
                response.seconds = self._seconds()
                response.headers = tuple(
                    (name.decode("ascii").lower(), value.decode("latin-1"))
                    for name, value in event.headers
                )
            case h11.Data():
                response.chunks.append(Chunk(self._seconds(), bytes(event.data)))
                if sum(len(chunk.data) for chunk in response.chunks) > self._limits.response_bytes:
                    raise _Over(End.LIMIT_BODY)
            case h11.EndOfMessage():
                delimited = {"content-length", "transfer-encoding"} & dict(response.headers).keys()
                raise _Over(End.COMPLETE if delimited else End.CLOSED)
            case h11.ConnectionClosed():
                raise _Over(_cut(response))
            case _:
                pass

    def _read(self, connected: socket.socket, response: _Response) -> bytes:
        limits = self._limits
        most = limits.headers_seconds if response.head is None else limits.idle_seconds
        rest = limits.total_seconds - self._seconds()
        if rest <= 0:
            raise _Over(End.TIMEOUT_TOTAL)
        with contextlib.suppress(OSError):
            connected.settimeout(min(most, rest))
        try:
            return connected.recv(_READ_BYTES)
        except TimeoutError:
            if self._seconds() >= limits.total_seconds:
                raise _Over(End.TIMEOUT_TOTAL) from None
            headers = response.head is None
            raise _Over(End.TIMEOUT_HEADERS if headers else End.TIMEOUT_IDLE) from None
        except OSError as error:
            raise _Over(_cut(response), type(error).__name__) from error


def _cut(response: _Response) -> End:
    return End.NO_RESPONSE if response.head is None else End.TRUNCATED
