"""A connection that can be lost: a TCP relay in front of a listener, cut without a goodbye.

A gRPC client that closes its channel says so; a client whose machine dies does not. The relay
passes bytes on as they are, so it carries TLS as well.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from conformance.errors import HarnessError

_CHUNK = 1 << 16
_CONNECT_SECONDS = 10.0
_JOIN_SECONDS = 5.0
# Closing with a linger of zero seconds sends a reset instead of what is still to be sent.
_RESET = struct.pack("ii", 1, 0)


class Relay:
    """Listens on a free port of this machine and forwards every connection to `address`."""

    def __init__(self, address: str) -> None:
        """`address`: a gRPC target string as `parse_address` makes them."""
        self._upstream = address
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"dns:///127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True, name="relay")]
        self._threads[0].start()

    def cut(self) -> None:
        """Reset every connection at once, and take no more."""
        with self._lock:
            self._cut = True
            sockets, self._sockets = self._sockets, []
        # A close alone does not wake a thread that waits in accept or recv.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in sockets:
            _reset(one)

    def close(self) -> None:
        """Cut, and wait for the threads."""
        self.cut()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = _connected(self._upstream)
            except OSError:
                client.close()
                continue
            with self._lock:
                if self._cut:
                    _reset(client)
                    _reset(server)
                    return
                self._sockets += [client, server]
                for source, sink in ((client, server), (server, client)):
                    thread = threading.Thread(
                        target=self._pump, args=(source, sink), daemon=True, name="relay-pump"
                    )
                    self._threads.append(thread)
                    thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                sink.sendall(data)
        with self._lock, suppress(OSError):
            # A cut closes both sides itself, and without an end that looks proper.
            if not self._cut:
                sink.shutdown(socket.SHUT_WR)


@contextmanager
def relay(address: str) -> Iterator[Relay]:
    """A relay for as long as the block runs."""
    made = Relay(address)
    try:
        yield made
    finally:
        made.close()


def _reset(one: socket.socket) -> None:
    with suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    with suppress(OSError):
        # Wakes a thread that waits in recv; the reset comes with the close.
        one.shutdown(socket.SHUT_RD)
    one.close()


def _connected(address: str) -> socket.socket:
    if address.startswith("unix:"):
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(_CONNECT_SECONDS)
        made.connect(address.removeprefix("unix:"))
    else:
        made = socket.create_connection(host_port(address), _CONNECT_SECONDS)
    made.settimeout(None)
    return made


def host_port(address: str) -> tuple[str, int]:
    """Host and port of a gRPC target string over TCP. Raises HarnessError for any other."""
    match = re.fullmatch(
        r"(?:dns:///|ipv4:|ipv6:)?\[?(?P<host>[^\[\]/]+)\]?:(?P<port>\d+)", address
    )
    if match is None:
        raise HarnessError(f"{address!r} is not host:port, so it cannot be relayed")
    return match["host"], int(match["port"])
