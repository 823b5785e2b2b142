"""The network side of one call: a httpcore backend whose socket can be timed and cancelled."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore

from conformance.http.exchange import End
from conformance.http.limits import Limits
from conformance.http.origin import Origin
from conformance.http.target import HttpTarget

# SO_LINGER on, 0 s: close sends RST, as a client does that is killed.
_RESET = struct.pack("ii", 1, 0)


class Link(httpcore.NetworkBackend):
    """Connects once, for one call. `why` tells afterwards what ended it, other than the server."""

    def __init__(self, target: HttpTarget, limits: Limits) -> None:
        self._target = target
        self._limits = limits
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._in_body = False
        self.started = time.monotonic()
        self.connected: float | None = None
        self.cancelled: float | None = None
        self.why: End | None = None

    # httpcore.NetworkBackend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - ours are in `limits`
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        """Dial the target's origin; httpcore's idea of it must be the same."""
        origin = Origin(self._target.origin.scheme, host, port)
        if origin != self._target.origin:
            raise httpcore.ConnectError(f"{origin.text} is not the target")
        try:
            connected = self._target.dialer(origin, self._limits.connect_seconds)
        except OSError as error:
            self.why = End.CONNECT
            raise httpcore.ConnectError(str(error)) from error
        with self._lock:
            self._socket = connected
            gone = self.cancelled is not None
        self.connected = self.seconds()
        if gone:
            self._shut()
        return _Stream(self, connected)

    # What the call does

    def seconds(self) -> float:
        """Monotonic time since the call started."""
        return time.monotonic() - self.started

    def reading_body(self) -> None:
        """The headers have come: from now on the limit between two chunks holds."""
        self._in_body = True

    def cancel(self, *, reset: bool = False) -> None:
        """End the connection as a client that leaves: gracefully, or with a reset."""
        with self._lock:
            if self.cancelled is not None:
                return
            self.cancelled = self.seconds()
            connected = self._socket
        if connected is not None and reset:
            with contextlib.suppress(OSError):
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._shut()

    def _shut(self) -> None:
        connected = self._socket
        if connected is not None:
            # Wakes a thread that waits in recv; close would not.
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def wait(self, connected: socket.socket) -> None:
        """Set the time that the next read or write may take. Raises ReadTimeout when none is
        left.
        """
        rest = self._limits.total_seconds - self.seconds()
        if rest <= 0:
            self.why = End.TIMEOUT_TOTAL
            raise httpcore.ReadTimeout("no time left")
        with contextlib.suppress(OSError):
            limits = self._limits
            most = limits.idle_seconds if self._in_body else limits.headers_seconds
            connected.settimeout(min(most, rest))

    def timed_out(self) -> None:
        """A read or write took all its time: remember which limit that was."""
        if self._limits.total_seconds - self.seconds() <= 0:
            self.why = End.TIMEOUT_TOTAL
        else:
            self.why = End.TIMEOUT_IDLE if self._in_body else End.TIMEOUT_HEADERS


class _Stream(httpcore.NetworkStream):
    """A connected socket, with TLS when httpcore starts it."""

    def __init__(self, link: Link, connected: socket.socket) -> None:
        self._link = link
        self._socket = connected

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        self._link.wait(self._socket)
        try:
            return self._socket.recv(max_bytes)
        except TimeoutError as error:
            self._link.timed_out()
            raise httpcore.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._link.wait(self._socket)
        try:
            self._socket.sendall(buffer)
        except TimeoutError as error:
            self._link.timed_out()
            raise httpcore.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        try:
            return _Stream(
                self._link, ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
            )
        except (OSError, ssl.SSLError) as error:
            self._socket.close()
            self._link.why = End.CONNECT
            raise httpcore.ConnectError(str(error)) from error

    def get_extra_info(self, info: str) -> Any:
        # Asked for by httpcore: whether an idle connection can still be used; none ever is.
        return self._socket if info == "socket" else None
