from __future__ import annotations

import socket

import pytest

from conformance.errors import ConfigError
from conformance.http.origin import Origin, parse_origin
from conformance.http.pinning import PinnedDialer
from conformance.http.policy import Policy

# Spelled so that something else than what one reads is meant, or simply not public.
HOSTILE = (
    "",
    "example.com",
    "//example.com",
    "https://",
    "ftp://example.com",
    "file:///etc/passwd",
    "gopher://127.0.0.1:70",
    "HTTPS://example.com",
    "https://Example.com",
    "https://example.com/",
    "https://example.com/v1",
    "https://example.com?x=1",
    "https://example.com#x",
    "https://example.com:443",
    "https://example.com:0",
    "https://example.com:99999",
    "https://example.com:08443",
    "https://example.com.",
    "https://example..com",
    "https://-example.com",
    "https://user@example.com",
    "https://user:word@example.com",
    "https://example.com@127.0.0.1",
    "https://example.com\\@127.0.0.1",
    "https://example.com%2f@127.0.0.1",
    "https://exam ple.com",
    "https://example.com\t",
    "https://example.com\r\nhost: x",
    "https://ex\u00e4mple.com",
    "https://example\u3002com",
    "https://\uff11\uff12\uff17.0.0.1",
    "https://127.1",
    "https://2130706433",
    "https://0x7f.1",
    "https://0x7f000001",
    "https://0177.0.0.1",
    "https://127.0.0.01",
    "https://127.000.000.001",
    "https://[::ffff:127.0.0.1]",
    "https://[::ffff:7f00:1]",
    "https://[::127.0.0.1]",
    "https://[0:0:0:0:0:0:0:1]",
    "https://[fe80::1%25eth0]",
    "https://[fe80::1%eth0]",
    "https://[::1",
    "http://example.com",
    "http://8.8.8.8",
    "http://localhost:8080",
    "http://127.0.0.2:8080",
    "http://0.0.0.0:8080",
    "http://[::]:8080",
    "http://169.254.169.254",
    "https://localhost",
    "https://metadata",
    "https://metadata.google.internal",
    "https://printer.local",
    "https://router.home.arpa",
    "https://169.254.169.254",
    "https://100.100.100.200",
    "https://168.63.129.16",
    "https://10.0.0.1",
    "https://172.16.0.1",
    "https://192.168.0.1",
    "https://100.64.0.1",
    "https://0.0.0.0",
    "https://224.0.0.1",
    "https://255.255.255.255",
    "https://[fd00:ec2::254]",
    "https://[fe80::1]",
    "https://[fc00::1]",
    "https://[64:ff9b::a9fe:a9fe]",
    "https://[2002:a9fe:a9fe::]",
    "https://[2001:0:1::1]",
    "https://[ff02::1]",
)


def _nowhere(*_: object) -> socket.socket:
    raise AssertionError("a refused origin was looked up or dialled")


@pytest.mark.parametrize("loopback", [False, True])
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile(text: str, loopback: bool) -> None:
    """Each hostile origin is refused before any look-up, whether loopback is allowed or not."""
    dialer = PinnedDialer(Policy(loopback=loopback), _nowhere, _nowhere)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        dialer(parse_origin(text), 1.0)


@pytest.mark.parametrize("text", ["http://127.0.0.1:8080", "http://[::1]:8080"])
def test_loopback_needs_the_opt_in(text: str) -> None:
    """A literal loopback origin passes with the opt-in, and only with it."""
    origin = parse_origin(text)
    Policy(loopback=True).admit(origin)
    with pytest.raises(ConfigError, match="opt-in"):
        Policy().admit(origin)


@pytest.mark.parametrize("text", ["https://api.example.com", "https://8.8.8.8", "https://a.b:8443"])
def test_public(text: str) -> None:
    """HTTPS to a public name or address passes; the opt-in for loopback changes nothing."""
    Policy().admit(parse_origin(text))
    Policy(loopback=True).admit(parse_origin(text))


def test_a_name_is_never_loopback() -> None:
    """The opt-in is for literal addresses: a name that leads there is refused all the same."""

    def resolver(host: str, seconds: float) -> list[str]:
        return ["127.0.0.1"]

    dialer = PinnedDialer(Policy(loopback=True), resolver, _nowhere)
    with pytest.raises(ConfigError, match="loopback"):
        dialer(Origin("https", "rebound.example", 443), 1.0)
