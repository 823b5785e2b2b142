"""Where an HTTP target is and how to reach it."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from conformance.http.dialer import Dialer, dial_loopback
from conformance.http.exchange import Headers
from conformance.http.origin import Origin

# The values of credentials, read anew at each dispatch and kept nowhere.
Secrets = Callable[[], Headers]


def no_secrets() -> Headers:
    """A target without credentials."""
    return ()


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """One server. dialer: makes its connections. headers: sent with every call. secrets: headers
    whose values may be in no report. tls: None = the system's trust store, made when needed.
    """

    origin: Origin
    dialer: Dialer = dial_loopback
    headers: Headers = ()
    secrets: Secrets = field(default=no_secrets, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """How reports and commands name it."""
        return self.origin.text
