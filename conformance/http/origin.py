"""Canonical origins: one spelling for each server, so that a name means one place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from conformance.errors import ConfigError

DEFAULT_PORTS = {"http": 80, "https": 443}
_EXPECTED = "scheme://host or scheme://host:port in lower case, without path, query or user"
# A label of a host name; an all-numeric last label would be read as an address by some resolvers.
_LABEL = re.compile(r"^(?!-)[a-z0-9-]{1,63}(?<!-)$")
_LONGEST_NAME = 253


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a server is. host: a lower-case name, or an address without brackets."""

    scheme: str
    host: str
    port: int

    @property
    def text(self) -> str:
        """The one spelling: the port is left out where the scheme implies it."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        suffix = "" if DEFAULT_PORTS[self.scheme] == self.port else f":{self.port}"
        return f"{self.scheme}://{shown}{suffix}"

    @property
    def authority(self) -> str:
        """Value of the Host header."""
        return self.text.partition("://")[2]

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """The address, when the host is a literal one."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None

    @property
    def loopback(self) -> bool:
        """Whether the host is literally 127.0.0.1 or ::1. A name never is."""
        return self.host in {"127.0.0.1", "::1"}


def parse_origin(text: str) -> Origin:
    """The origin that `text` spells. Raises ConfigError unless it is spelled canonically: two
    spellings of one place (127.1, 0x7f.1, a trailing dot) are how a policy is walked around.
    """
    if not text.isascii() or any(sign.isspace() for sign in text):
        raise _bad(text, "has characters that no origin has")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _bad(text, str(error)) from error
    if parts.scheme not in DEFAULT_PORTS:
        raise _bad(text, f"has the scheme {parts.scheme!r}, not http or https")
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc or text[-1:] in "/?#":
        raise _bad(text, "has more than an origin")
    origin = Origin(parts.scheme, _host(text, parts.hostname or ""), port or 0)
    if port is None:
        origin = Origin(origin.scheme, origin.host, DEFAULT_PORTS[origin.scheme])
    if origin.text != text or origin.port == 0:
        raise _bad(text, f"is no canonical origin (that would be {origin.text})")
    return origin


def _host(text: str, host: str) -> str:
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    labels = host.split(".")
    if len(host) > _LONGEST_NAME or not all(_LABEL.match(label) for label in labels):
        raise _bad(text, f"has the host {host!r}, which is no name and no address")
    # 0x7f.1 and 127.1 are addresses to inet_aton, and no names to DNS.
    if re.match(r"^(0x[0-9a-f]*|[0-9]+)$", labels[-1]):
        raise _bad(text, f"has the host {host!r}, which is an address in disguise")
    return host


def _bad(text: str, problem: str) -> ConfigError:
    return ConfigError(f"origin {text!r} {problem}", expected=_EXPECTED)
