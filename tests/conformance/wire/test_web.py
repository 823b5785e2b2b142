"""The web server of the suite keeps what was asked of it."""

from __future__ import annotations

import http.client
import threading

import pytest

from conformance.wire.web import web

SECONDS = 10.0


def ask(url: str, path: str, headers: dict[str, str]) -> bytes:
    host = url.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(host, timeout=SECONDS)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().read()
    finally:
        connection.close()


def test_requests_are_kept_with_their_headers() -> None:
    """Names in lower case, by path; the body is served."""
    with web(b"content", "text/plain") as server:
        assert ask(server.url, "/a", {"Traceparent": "t", "Other": "o"}) == b"content"
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
        ask(url, "/", {})
    assert not any(thread.name == "web" for thread in threading.enumerate())
