from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address

import pytest

from conformance.http.addresses import Address
from conformance.http.origin import Origin, parse_origin
from conformance.http.pinning import PinnedDialer, ResolveError, connect, resolve
from conformance.http.policy import Policy, PolicyError

ORIGIN = parse_origin("https://engine.example")
PUBLIC, OTHER = "93.184.216.34", "1.1.1.1"


class FakeSocket:
    """What a connector gives back: it knows its other end, and whether it was closed."""

    def __init__(self, peer: str, port: int = 443) -> None:
        self.peer = (peer, port)
        self.closed = False

    def getpeername(self) -> tuple[str, int]:
        return self.peer

    def close(self) -> None:
        self.closed = True


class Net:
    """A resolver with an answer for each look-up, and a connector that notes what it dials."""

    def __init__(self, *answers: list[str], broken: tuple[str, ...] = (), end: str = "") -> None:
        self.answers = list(answers)
        self.broken = broken
        self.end = end
        self.looked_up = 0
        self.dialled: list[str] = []
        self.sockets: list[FakeSocket] = []

    def resolver(self, host: str, seconds: float) -> list[str]:
        self.looked_up += 1
        return self.answers[min(self.looked_up, len(self.answers)) - 1]

    def connector(self, address: Address, port: int, seconds: float) -> socket.socket:
        self.dialled.append(str(address))
        if str(address) in self.broken:
            raise ConnectionRefusedError("refused")
        self.sockets.append(FakeSocket(self.end or str(address), port))
        return self.sockets[-1]  # type: ignore[return-value]

    @property
    def dialer(self) -> PinnedDialer:
        return PinnedDialer(Policy(), self.resolver, self.connector)


def test_one_look_up_for_one_connection() -> None:
    """What is dialled is what was vetted; the name is not looked up a second time."""
    net = Net([PUBLIC], ["127.0.0.1"])
    assert net.dialer(ORIGIN, 1.0) is net.sockets[0]  # type: ignore[comparison-overlap]
    assert (net.looked_up, net.dialled) == (1, [PUBLIC])


def test_rebinding() -> None:
    """A name that is public first and loopback then is refused the second time, undialled."""
    net = Net([PUBLIC], ["127.0.0.1"])
    net.dialer(ORIGIN, 1.0)
    with pytest.raises(PolicyError, match="loopback"):
        net.dialer(ORIGIN, 1.0)
    assert net.dialled == [PUBLIC]


@pytest.mark.parametrize(
    "answers",
    [
        [PUBLIC, "10.0.0.1"],
        ["169.254.169.254", PUBLIC],
        [PUBLIC, OTHER, "::1"],
        [PUBLIC, "::ffff:127.0.0.1"],
        [PUBLIC, "fe80::1%eth0"],
        [PUBLIC, "127.1"],
        [PUBLIC, ""],
        [f"1.1.{number}.1" for number in range(65)],
    ],
)
def test_one_bad_answer_refuses_all(answers: list[str]) -> None:
    """An answer that is not public, or no address, refuses the good ones beside it."""
    net = Net(answers)
    with pytest.raises(PolicyError):
        net.dialer(ORIGIN, 1.0)
    assert net.dialled == []


def test_the_next_address() -> None:
    """An address that does not answer gives way to the next vetted one."""
    net = Net([PUBLIC, OTHER], broken=(PUBLIC,))
    net.dialer(ORIGIN, 1.0)
    assert net.dialled == [PUBLIC, OTHER]


def test_none_answers() -> None:
    """Where no address answers, the last failure is told; it is no refusal by the policy."""
    net = Net([PUBLIC, OTHER], broken=(PUBLIC, OTHER))
    with pytest.raises(ConnectionRefusedError):
        net.dialer(ORIGIN, 1.0)


@pytest.mark.parametrize("end", ["127.0.0.1", OTHER])
def test_another_end(end: str) -> None:
    """A connection whose other end is not what was dialled is closed and refused."""
    net = Net([PUBLIC], end=end)
    with pytest.raises(PolicyError, match="another end"):
        net.dialer(ORIGIN, 1.0)
    assert net.sockets[0].closed


def test_no_address() -> None:
    """A name without addresses is a failed look-up."""
    with pytest.raises(ResolveError):
        Net([]).dialer(ORIGIN, 1.0)


def test_no_time_left() -> None:
    """A dead address may not take more than all the time."""
    with pytest.raises(TimeoutError):
        Net([PUBLIC]).dialer(ORIGIN, 0.0)


def test_a_literal_address_is_not_looked_up() -> None:
    """An origin with an address needs no resolver."""
    net = Net(["10.0.0.1"])
    net.dialer(parse_origin(f"https://{OTHER}"), 1.0)
    assert (net.looked_up, net.dialled) == (0, [OTHER])


@contextmanager
def _listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_real_loopback() -> None:
    """With the opt-in a listener on loopback is reached, and is the end that it should be."""
    with _listening() as port:
        origin = Origin("http", "127.0.0.1", port)
        with PinnedDialer(Policy(loopback=True))(origin, 5.0) as connected:
            assert connected.getpeername() == ("127.0.0.1", port)


def test_real_refusal_leaves_no_socket() -> None:
    """A closed port is an OSError, and the socket is closed (or pytest would say so)."""
    with _listening() as port:
        pass
    with pytest.raises(OSError, match="refused"):
        connect(ip_address("127.0.0.1"), port, 5.0)


def test_resolver_knows_literals() -> None:
    """The system's resolver gives addresses as text."""
    assert resolve("127.0.0.1", 10.0) == ["127.0.0.1"]


def test_resolver_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that never answers is left alone when the time is over."""
    free = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: free.wait() and [])
    try:
        with pytest.raises(ResolveError, match="within"):
            resolve("engine.example", 0.01)
    finally:
        free.set()


def test_resolver_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed look-up is a ResolveError, whatever the system raised."""

    def fail(*_: object, **__: object) -> None:
        raise UnicodeError("label too long")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(ResolveError, match="UnicodeError"):
        resolve("engine.example", 10.0)
