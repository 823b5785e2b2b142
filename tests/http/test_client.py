"""The client: one call is one connection, ends are told apart, and nothing is unbounded."""

from __future__ import annotations

import socket
import threading

import pytest

from conformance.errors import ConfigError
from conformance.http.client import HttpConnection
from conformance.http.exchange import End, Exchange, Request, describe
from conformance.http.limits import Limits
from conformance.http.origin import parse_origin
from conformance.http.target import HttpTarget
from tests.http.sockets import Script, scripted, until_closed

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
WHOLE = HEAD + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def send(data: bytes) -> Script:
    return lambda connected: connected.sendall(data)


def hold(data: bytes) -> Script:
    """Say that much and then nothing, until the client goes."""

    def script(connected: socket.socket) -> None:
        connected.sendall(data)
        until_closed(connected)

    return script


def call(script: Script, *, request: Request | None = None, **limits: float) -> Exchange:
    with scripted(script) as origin:
        target = HttpTarget(parse_origin(origin))
        with HttpConnection(target, Limits(**limits)) as connection:  # type: ignore[arg-type]
            return connection.finish(connection.start(request or Request("GET", "/x")))


ENDS = {
    "length": (send(WHOLE), End.COMPLETE, b"hello"),
    "chunks": (send(CHUNKED + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), End.COMPLETE, b"hello"),
    "close": (send(HEAD + b"\r\nhello"), End.CLOSED, b"hello"),
    "HTTP/1.0": (send(b"HTTP/1.0 200 OK\r\n\r\nhello"), End.CLOSED, b"hello"),
    "no content": (send(b"HTTP/1.1 204 No Content\r\n\r\n"), End.COMPLETE, b""),
    "short": (send(WHOLE[:-1]), End.TRUNCATED, b"hell"),
    "no last chunk": (send(CHUNKED + b"2\r\nhe\r\n"), End.TRUNCATED, b"he"),
    "bad chunk": (send(CHUNKED + b"zz\r\n"), End.MALFORMED, b""),
    "nothing": (send(b""), End.NO_RESPONSE, b""),
    "half a head": (send(HEAD), End.NO_RESPONSE, b""),
    "no HTTP": (send(b"220 mail.example ESMTP\r\n\r\n"), End.MALFORMED, b""),
}


@pytest.mark.parametrize("name", ENDS)
def test_ends(name: str) -> None:
    """How a call ended is told, and what had come until then is kept."""
    script, kind, body = ENDS[name]
    exchange = call(script)
    assert exchange.ending.kind is kind
    assert exchange.body == body
    assert exchange.whole == (kind in {End.COMPLETE, End.CLOSED})


LIMITS = {
    "headers in time": (hold(b""), {"headers_seconds": 0.2}, End.TIMEOUT_HEADERS),
    "idle": (hold(WHOLE[:-2]), {"idle_seconds": 0.2}, End.TIMEOUT_IDLE),
    "in all": (hold(WHOLE[:-2]), {"total_seconds": 0.3}, End.TIMEOUT_TOTAL),
    "body": (send(WHOLE), {"response_bytes": 3}, End.LIMIT_BODY),
    "bytes of headers": (send(WHOLE), {"header_bytes": 20}, End.LIMIT_HEADERS),
    "headers": (send(WHOLE), {"headers": 1}, End.LIMIT_HEADERS),
    "chunks": (hold(CHUNKED + b"1\r\na\r\n" * 50), {"chunks": 0}, End.LIMIT_CHUNKS),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    """Every limit ends the call and is named; the body never exceeds its own."""
    script, limits, kind = LIMITS[name]
    exchange = call(script, **limits)
    assert exchange.ending.kind is kind
    assert len(exchange.body) <= limits.get("response_bytes", 1000)


def test_what_is_kept() -> None:
    """Status, version, headers in lower case, media type, and moments in order."""
    exchange = call(send(CHUNKED + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"))
    assert (exchange.status, exchange.http_version) == (200, "HTTP/1.1")
    assert exchange.media_type == "text/plain"
    assert exchange.header("transfer-encoding") == "chunked"
    seconds = [exchange.headers_seconds, *(c.seconds for c in exchange.chunks)]
    assert None not in seconds
    assert exchange.when(5) == exchange.chunks[-1].seconds <= exchange.ending.seconds


def test_what_is_sent() -> None:
    """HTTP/1.1, no compression, nothing of the environment, and exactly the given headers."""
    seen: list[bytes] = []

    def script(connected: socket.socket) -> None:
        data = b""
        while not data.endswith(b"\r\n\r\n{}"):
            data += connected.recv(65_536)
        seen.append(data)
        connected.sendall(WHOLE)

    with scripted(script, read=False) as origin:
        target = HttpTarget(parse_origin(origin), headers=(("x-a", "1"),))
        with HttpConnection(target) as connection:
            request = Request("POST", "/v1/x", (("content-type", "application/json"),), b"{}")
            kept = connection.finish(connection.start(request)).request
    head, _, body = seen[0].partition(b"\r\n\r\n")
    lines = sorted(head.split(b"\r\n"))
    host = origin.partition("//")[2].encode()
    assert lines == sorted(
        [
            b"POST /v1/x HTTP/1.1",
            b"Host: " + host,
            b"content-type: application/json",
            b"x-a: 1",
            b"Content-Length: 2",
        ]
    )
    assert body == b"{}"
    assert kept.headers == (("content-type", "application/json"), ("x-a", "1"))


def test_no_log_of_the_library_tells_of_a_call(caplog: pytest.LogCaptureFixture) -> None:
    """Not at DEBUG either: there are headers, which may be credentials, and addresses."""
    caplog.set_level("DEBUG")
    call(send(WHOLE), request=Request("GET", "/secret", (("authorization", "secret"),)))
    assert [record.name for record in caplog.records if record.name.startswith("http")] == []


def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies of the environment are not used."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert call(send(WHOLE)).ok


def test_secrets_are_sent_and_not_kept() -> None:
    """The value goes out; only the name stays."""
    seen: list[bytes] = []

    def script(connected: socket.socket) -> None:
        seen.append(connected.recv(65_536))
        connected.sendall(WHOLE)

    with scripted(script, read=False) as origin:
        target = HttpTarget(
            parse_origin(origin), secrets=lambda: (("authorization", "Bearer hush-hush"),)
        )
        with HttpConnection(target) as connection:
            exchange = connection.finish(connection.start(Request("GET", "/x")))
    assert b"authorization: Bearer hush-hush" in seen[0]
    assert "hush-hush" not in repr(exchange) + repr(target)
    assert exchange.request.secret_headers == ("authorization",)


def test_redirects_are_not_followed() -> None:
    """A redirect is an answer like another."""
    exchange = call(send(b"HTTP/1.1 302 F\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n"))
    assert (exchange.status, exchange.ok) == (302, False)


def test_compression_is_left_alone() -> None:
    """A body is what was sent: a server that compresses unasked is seen doing so."""
    coded = HEAD + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"
    exchange = call(send(coded))
    assert exchange.body == b"hello"
    assert exchange.header("content-encoding") == "gzip"


def test_a_refused_connection() -> None:
    """Nothing was sent, and that is told apart."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with HttpConnection(HttpTarget(parse_origin(f"http://127.0.0.1:{port}"))) as connection:
        exchange = connection.finish(connection.start(Request("GET", "/x")))
    assert exchange.ending.kind is End.CONNECT
    assert "no status" in describe(exchange)


def test_no_policy_no_name() -> None:
    """Without a dialer that has a policy only literal loopback addresses are dialled."""
    with HttpConnection(HttpTarget(parse_origin("http://localhost:1"))) as connection:
        live = connection.start(Request("GET", "/x"))
        with pytest.raises(ConfigError, match="loopback"):
            connection.finish(live)


@pytest.mark.parametrize("reset", [False, True])
def test_cancel(reset: bool) -> None:
    """A client that leaves is seen by the server at once, and the call says who ended it."""
    left = threading.Event()

    def script(connected: socket.socket) -> None:
        connected.sendall(CHUNKED + b"2\r\nhe\r\n")
        try:
            until_closed(connected)
        finally:
            left.set()

    with scripted(script) as origin, HttpConnection(HttpTarget(parse_origin(origin))) as connection:
        live = connection.start(Request("GET", "/x"))
        assert live.wait(lambda body: body == b"he", 10)
        live.cancel(reset=reset)
        exchange = connection.finish(live)
        assert left.wait(10)
    assert exchange.ending.kind is End.CANCELLED
    assert exchange.cancelled is not None
    assert exchange.body == b"he"


def test_cancel_all_from_another_thread() -> None:
    """Every running call ends."""
    with (
        scripted(hold(b"")) as origin,
        HttpConnection(HttpTarget(parse_origin(origin))) as connection,
    ):
        live = connection.start(Request("GET", "/x"))
        connection.cancel_all()
        assert connection.finish(live).ending.kind is End.CANCELLED


def test_waiting_ends_with_the_call() -> None:
    """Waiting for what never comes ends when the call does, not at its limit."""
    with (
        scripted(send(WHOLE)) as origin,
        HttpConnection(HttpTarget(parse_origin(origin))) as connection,
    ):
        live = connection.start(Request("GET", "/x"))
        assert not live.wait(lambda body: b"never" in body, 60)
        assert live.ended
        assert connection.finish(live).ok
