"""Canonical origins."""

from __future__ import annotations

import pytest

from conformance.errors import ConfigError
from conformance.http.origin import Origin, parse_origin


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("http://127.0.0.1:8080", Origin("http", "127.0.0.1", 8080)),
        ("http://[::1]:8080", Origin("http", "::1", 8080)),
        ("https://example.org", Origin("https", "example.org", 443)),
        ("https://a-b.example.org:8443", Origin("https", "a-b.example.org", 8443)),
    ],
)
def test_canonical(text: str, origin: Origin) -> None:
    """One spelling, there and back."""
    assert parse_origin(text) == origin
    assert origin.text == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:8080",
        "ftp://example.org",
        "HTTP://127.0.0.1:80",
        "http://127.0.0.1:80",
        "https://example.org:443",
        "https://example.org/",
        "https://example.org/v1",
        "https://example.org?x",
        "https://example.org#",
        "https://user@example.org",
        "https://user:secret@example.org",
        "https://EXAMPLE.org",
        "https://example.org.",
        "https://example..org",
        "https://-a.org",
        "https://münchen.example",
        "http://127.1:8080",
        "http://0x7f.1:8080",
        "http://0x7f000001:8080",
        "http://2130706433:8080",
        "http://0177.0.0.1:8080",
        "http://127.0.0.1.:8080",
        "http://[::ffff:127.0.0.1%25lo]:8080",
        "http://[0:0:0:0:0:0:0:1]:8080",
        "http://[::1]:08080",
        "http://[::1]:0",
        "http://[::1]:65536",
        "http://[::1]:",
        "http:// 127.0.0.1:8080",
        "http://127.0.0.1:8080\n",
        "http://a\tb:80",
    ],
)
def test_other_spellings(text: str) -> None:
    """Every other spelling is refused, and the line says what was expected."""
    with pytest.raises(ConfigError, match="scheme://host"):
        parse_origin(text)


def test_a_name_is_never_loopback() -> None:
    """Only literal addresses are: what a name resolves to is not up to us."""
    assert parse_origin("http://127.0.0.1:1").loopback
    assert not parse_origin("http://localhost:1").loopback
