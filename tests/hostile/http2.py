"""A server that speaks as much HTTP/2 as it takes to misbehave: frames written by hand."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
_FRAME_HEAD = 9
# What a behaviour may not wait longer for than a test lasts.
SECONDS = 30.0


class Peer:
    """One accepted connection, as a behaviour sees it."""

    def __init__(self, connection: socket.socket, closing: threading.Event) -> None:
        self._connection = connection
        self.closing = closing

    def send(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        """One frame."""
        head = (
            struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream)
        )
        self.raw(head + payload)

    def raw(self, data: bytes) -> None:
        """Bytes as they are. Ends the behaviour when the client is gone."""
        self._connection.sendall(data)

    def headers(self, stream: int, fields: dict[str, str], *, end: bool = False) -> None:
        """A HEADERS frame, its fields literal and never indexed."""
        block = b"".join(literal(name, value) for name, value in fields.items())
        self.send(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block)

    def begin(self, stream: int, content_type: str = "application/grpc") -> None:
        """The response headers of a call."""
        self.headers(stream, {":status": "200", "content-type": content_type})

    def message(self, stream: int, data: bytes = b"") -> None:
        """A whole gRPC message."""
        self.send(DATA, 0, stream, b"\0" + struct.pack(">I", len(data)) + data)

    def status(self, stream: int, code: int, text: str = "") -> None:
        """The end of a call, as trailers that come alone when nothing was sent before."""
        fields = {"grpc-status": str(code)} | ({"grpc-message": text} if text else {})
        self.headers(stream, fields, end=True)

    def close(self) -> None:
        """End the connection with a reset."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._connection.close()


OnCall = Callable[[Peer, int], None]
OnConnect = Callable[[Peer], None]


def answer_settings(peer: Peer) -> None:
    """What a right server does with a new connection."""
    peer.send(SETTINGS, 0, 0)


class HostileServer:
    """Listens on a port of its own; each connection has a thread. on_call gets the stream id of
    every call, once its request has been sent.
    """

    def __init__(self, on_call: OnCall, on_connect: OnConnect = answer_settings) -> None:
        self._on_call = on_call
        self._on_connect = on_connect
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._open: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        # Closing alone does not wake a thread that waits in accept.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join(SECONDS)

    def _run(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._run(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        peer = Peer(connection, self._closing)
        # The client hangs up, or the test ends: both are how this ends.
        with contextlib.suppress(OSError, EOFError):
            _exactly(connection, len(PREFACE))
            self._on_connect(peer)
            while True:
                head = _exactly(connection, _FRAME_HEAD)
                payload = _exactly(connection, int.from_bytes(head[:3], "big"))
                self._frame(peer, head, payload)

    def _frame(self, peer: Peer, head: bytes, payload: bytes) -> None:
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        if kind == SETTINGS and not flags & ACK:
            peer.send(SETTINGS, ACK, 0)
        elif kind == PING and not flags & ACK:
            peer.send(PING, ACK, 0, payload)
        elif kind in (HEADERS, DATA) and flags & END_STREAM:
            self._run(self._call, peer, stream)

    def _call(self, peer: Peer, stream: int) -> None:
        with contextlib.suppress(OSError):
            self._on_call(peer, stream)


def literal(name: str, value: str) -> bytes:
    """An HPACK field that is never indexed."""
    return b"\x10" + _text(name) + _text(value)


def _text(value: str) -> bytes:
    """An HPACK string without Huffman coding."""
    data = value.encode("ascii")
    return _integer(len(data)) + data


def _integer(value: int) -> bytes:
    """An HPACK integer with a prefix of seven bits."""
    if value < 127:
        return bytes((value,))
    out, rest = bytearray((127,)), value - 127
    while rest >= 128:
        out.append(rest % 128 + 128)
        rest //= 128
    return bytes((*out, rest))


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data
