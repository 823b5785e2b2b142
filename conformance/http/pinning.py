"""A dialer that follows a policy: looks a name up once, and connects to what it has vetted."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from conformance.http.addresses import Address, parse_address
from conformance.http.origin import Origin
from conformance.http.policy import Policy, PolicyError

# The addresses of a name, as the resolver spells them. Raises OSError when there are none.
Resolver = Callable[[str, float], list[str]]
# Connects to an address and port within so many seconds. Raises OSError.
Connector = Callable[[Address, int, float], socket.socket]
# A name with more addresses than this is no server's.
_MOST_ANSWERS = 64


class ResolveError(OSError):
    """A name has no address."""


def resolve(host: str, seconds: float) -> list[str]:
    """All addresses of a name, from the system's resolver, which knows no time limit itself."""
    answers: queue.Queue[list[str] | OSError] = queue.Queue(1)

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            answers.put([str(answer[4][0]) for answer in found])
        except (OSError, UnicodeError) as error:
            answers.put(ResolveError(f"no address for {host} ({type(error).__name__})"))

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise ResolveError(f"no address for {host} within {seconds:.1f} s") from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def connect(address: Address, port: int, seconds: float) -> socket.socket:
    """A connection to an address; no name is looked up."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    connected = socket.socket(family, socket.SOCK_STREAM)
    try:
        connected.settimeout(seconds)
        connected.connect((str(address), port))
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        connected.close()
        raise
    return connected


@dataclass(frozen=True, slots=True)
class PinnedDialer:
    """Dials an origin as a policy allows. The name is looked up once for each connection, every
    answer is vetted, and the connection goes to a vetted address: there is no second look-up that
    could say something else. TLS still checks the name.
    """

    policy: Policy
    resolver: Resolver = resolve
    connector: Connector = connect

    def __call__(self, origin: Origin, seconds: float) -> socket.socket:
        """Connect. Raises PolicyError when that is forbidden, OSError when it fails."""
        end = time.monotonic() + seconds
        failure: OSError = ResolveError(f"no address for {origin.host}")
        for address in self.addresses(origin, seconds):
            rest = end - time.monotonic()
            if rest <= 0:
                raise TimeoutError(f"no connection to {origin.text} within {seconds:.1f} s")
            try:
                return _asserted(self.connector(address, origin.port, rest), address, origin)
            except OSError as error:
                failure = error
        raise failure

    def addresses(self, origin: Origin, seconds: float) -> list[Address]:
        """What may be dialled for an origin, in the resolver's order. Raises PolicyError and
        OSError.
        """
        self.policy.admit(origin)
        if origin.address is not None:
            found = [origin.address]
        else:
            answers = list(dict.fromkeys(self.resolver(origin.host, seconds)))
            found = [each for text in answers if (each := parse_address(text)) is not None]
            if len(found) != len(answers) or len(answers) > _MOST_ANSWERS:
                raise PolicyError(f"{origin.text} is refused: its addresses cannot be vetted")
            if not found:
                raise ResolveError(f"no address for {origin.host}")
        self.policy.vet(origin, found)
        return found


def _asserted(connected: socket.socket, address: Address, origin: Origin) -> socket.socket:
    """The connection, if its other end is what was dialled."""
    try:
        peer = connected.getpeername()
        if parse_address(str(peer[0])) == address and peer[1] == origin.port:
            return connected
    except OSError:
        with contextlib.suppress(OSError):
            connected.close()
        raise
    connected.close()
    raise PolicyError(f"{origin.text} is refused: the connection has another end than was dialled")
