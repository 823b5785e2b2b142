"""The web server of the suite keeps what was asked of it."""

from __future__ import annotations

import threading
import urllib.request

import pytest

from conformance.wire.web import web

SECONDS = 10.0


def ask(url: str, headers: dict[str, str]) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=SECONDS) as a:
        body: bytes = a.read()
        return body


def test_requests_are_kept_with_their_headers() -> None:
    """Names in lower case, by path; the body is served."""
    with web(b"content", "text/plain") as server:
        assert ask(server.url + "a", {"Traceparent": "t", "Other": "o"}) == b"content"
        fetch = server.wait_fetch("/a", SECONDS)
        assert fetch is not None
        assert fetch.values("traceparent") == ("t",)
        assert fetch.values("tracestate") == ()
        assert server.wait_fetch("/b", 0.0) is None


def test_nothing_is_left_behind() -> None:
    """After its block nobody answers, and its thread has ended."""
    with web(b"", "text/plain") as server:
        url = server.url
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset, by the platform
        ask(url, {})
    assert not any(thread.name == "web" for thread in threading.enumerate())
