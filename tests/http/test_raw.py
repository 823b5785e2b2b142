"""Exact bytes at exact moments."""

from __future__ import annotations

import socket

import pytest

from conformance.http.exchange import End, Exchange, Request
from conformance.http.limits import Limits
from conformance.http.origin import parse_origin
from conformance.http.raw import HalfClose, Hangup, Pause, Step, send_raw
from conformance.http.target import HttpTarget
from tests.http.sockets import Script, scripted, until_closed

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"


def exchanged(script: Script, *steps: Step, limits: Limits | None = None) -> Exchange:
    with scripted(script, read=False) as origin:
        return send_raw(
            HttpTarget(parse_origin(origin)),
            steps,
            request=Request("POST", "/x"),
            limits=limits or Limits(),
        )


def test_bytes_arrive_as_they_are() -> None:
    """Nothing is added, changed or put in order."""
    seen: list[bytes] = []

    def script(connected: socket.socket) -> None:
        seen.append(until_closed(connected))
        connected.sendall(OK)

    odd = b"POST  /x\tHTTP/1.1\nhost:x\n\n\0\xff"
    exchange = exchanged(script, odd[:7], odd[7:], HalfClose())
    assert seen == [odd]
    assert exchange.request.body == odd
    assert (exchange.status, exchange.body, exchange.ending.kind) == (200, b"hi", End.COMPLETE)


def test_an_answer_before_the_body() -> None:
    """A reply to the headers alone is seen, and the rest of the steps is left."""

    def script(connected: socket.socket) -> None:
        connected.recv(65_536)
        connected.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        until_closed(connected)

    exchange = exchanged(script, HEAD, Pause(60), b"0123456789")
    assert exchange.status == 413
    assert exchange.request.body == HEAD
    assert exchange.ending.seconds < 30


def test_hangup() -> None:
    """The client goes in the middle of its request."""
    seen: list[bytes] = []

    def script(connected: socket.socket) -> None:
        seen.append(until_closed(connected))

    exchange = exchanged(script, HEAD + b"012", Hangup())
    assert exchange.ending.kind is End.CANCELLED
    assert seen == [HEAD + b"012"]


@pytest.mark.parametrize(
    ("answer", "kind", "status"),
    [
        (b"", End.NO_RESPONSE, None),
        (OK[:-1], End.TRUNCATED, 200),
        (b"HTTP/1.0 200 OK\r\n\r\nhi", End.CLOSED, 200),
        (b"what?\r\n\r\n", End.MALFORMED, None),
    ],
)
def test_ends(answer: bytes, kind: End, status: int | None) -> None:
    """Ends are told apart as the client does."""

    def script(connected: socket.socket) -> None:
        connected.recv(65_536)
        connected.sendall(answer)

    exchange = exchanged(script, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (exchange.ending.kind, exchange.status) == (kind, status)


def test_limits() -> None:
    """A server that says nothing is given up, and so is one that says too much."""
    silent = exchanged(
        lambda connected: until_closed(connected) and None,
        HEAD,
        limits=Limits(headers_seconds=0.2),
    )
    assert silent.ending.kind is End.TIMEOUT_HEADERS
    much = exchanged(
        lambda connected: connected.recv(65_536) and connected.sendall(OK),
        HEAD,
        limits=Limits(response_bytes=1),
    )
    assert much.ending.kind is End.LIMIT_BODY
