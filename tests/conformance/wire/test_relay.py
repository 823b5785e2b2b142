"""A relay passes calls on until it is cut; then the server sees the loss."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from conformance.errors import HarnessError
from conformance.wire.relay import host_port, relay

SECONDS = 10.0


@contextmanager
def echo() -> Iterator[tuple[str, threading.Event]]:
    """A server that sends back what it gets; the event is set when its connection is lost."""
    listener = socket.create_server(("127.0.0.1", 0))
    lost = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            try:
                while data := connection.recv(100):
                    connection.sendall(data)
            except ConnectionResetError:
                lost.set()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}", lost
    finally:
        listener.close()
        thread.join(SECONDS)


def connected(address: str) -> socket.socket:
    return socket.create_connection(host_port(address), SECONDS)


def test_cut_resets_the_server_side() -> None:
    """Bytes pass both ways; a cut reaches the server as a reset, not as a proper end."""
    with echo() as (address, lost), relay(address) as line, connected(line.address) as client:
        client.sendall(b"hello")
        assert client.recv(100) == b"hello"
        line.cut()
        assert lost.wait(SECONDS)


def test_relay_is_closed_after_its_block() -> None:
    """Nothing listens any more, and its threads have ended."""
    with echo() as (address, _), relay(address) as line, connected(line.address) as client:
        client.sendall(b"x")
        assert client.recv(100) == b"x"
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset, by the platform
        connected(line.address)
    assert not any(thread.name.startswith("relay") for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("dns:///localhost:50051", ("localhost", 50051)),
        ("ipv6:[::1]:7", ("::1", 7)),
        ("10.0.0.1:80", ("10.0.0.1", 80)),
    ],
)
def test_host_and_port_of_targets(address: str, expected: tuple[str, int]) -> None:
    """The forms that parse_address makes."""
    assert host_port(address) == expected


def test_other_addresses_are_refused() -> None:
    """A socket file has no host."""
    with pytest.raises(HarnessError, match="unix"):
        host_port("unix:/tmp/x")
