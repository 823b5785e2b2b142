"""A server of raw sockets: says exactly what a test wants, for one connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Script = Callable[[socket.socket], None]


@contextmanager
def scripted(script: Script, *, read: bool = True) -> Iterator[str]:
    """The origin of a server that reads one request and then runs `script`, closing after it.

    read: whether it waits for the end of the request's head first.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(20)

    def serve() -> None:
        connected, _ = listener.accept()
        with connected:
            connected.settimeout(20)
            seen = b""
            while read and b"\r\n\r\n" not in seen:
                data = connected.recv(65_536)
                if not data:
                    return
                seen += data
            try:
                script(connected)
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        thread.join()
        listener.close()


def until_closed(connected: socket.socket) -> bytes:
    """Everything that comes until the peer closes."""
    seen = b""
    while data := connected.recv(65_536):
        seen += data
    return seen
