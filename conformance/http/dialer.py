"""The seam where connections are made: a policy puts its own dialer here."""

from __future__ import annotations

import socket
from collections.abc import Callable

from conformance.errors import ConfigError
from conformance.http.origin import Origin

# Connects to the origin within so many seconds. Raises OSError when it cannot, and ConformError
# when it must not.
Dialer = Callable[[Origin, float], socket.socket]


def dial_loopback(origin: Origin, seconds: float) -> socket.socket:
    """Connect to a literal loopback address, and to nothing else: no name is ever looked up."""
    if not origin.loopback:
        raise ConfigError(
            f"{origin.text} is not a literal loopback address",
            expected="http://127.0.0.1:port or http://[::1]:port, or a dialer with a policy",
        )
    return socket.create_connection((origin.host, origin.port), seconds)
