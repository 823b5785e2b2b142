"""Whatever answers at an address: a run ends in time, with one clear line or a partial report."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from conformance.errors import UnreachableError
from conformance.model.status import Status
from conformance.mutants.http.fixture import options_for
from conformance.runner.report import Report
from conformance.runner.run import run_http
from tests.http.sockets import until_closed

Talk = Callable[[socket.socket], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
# A run must end within its limit and some; a loaded machine gets much more.
SECONDS = 60.0


@contextmanager
def talking(talk: Talk) -> Iterator[str]:
    """The origin of a server that does this with every connection."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    open_ones: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def one(connected: socket.socket) -> None:
        try:
            talk(connected)
        except OSError:
            return
        finally:
            connected.close()

    def serve() -> None:
        while True:
            try:
                connected, _ = listener.accept()
            except OSError:
                return
            open_ones.append(connected)
            threads.append(threading.Thread(target=one, args=(connected,), daemon=True))
            threads[-1].start()

    server = threading.Thread(target=serve)
    server.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        server.join()
        for connected in open_ones:
            connected.close()
        for thread in threads:
            thread.join(10)


def silent(connected: socket.socket) -> None:
    until_closed(connected)


def closing(connected: socket.socket) -> None:
    connected.recv(65_536)


def garbage(connected: socket.socket) -> None:
    connected.sendall(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" * 8)
    until_closed(connected)


def endless_head(connected: socket.socket) -> None:
    connected.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in itertools.count():
        connected.sendall(b"x-%d: y\r\n" % number)


def endless_line(connected: socket.socket) -> None:
    connected.sendall(b"HTTP/1.1 200 OK\r\nx: ")
    while True:
        connected.sendall(b"y" * 65_536)


@pytest.mark.parametrize("talk", [silent, closing, garbage, endless_head, endless_line])
def test_no_http(talk: Talk) -> None:
    """Exit code 2 with a line that says where and what."""
    with talking(talk) as origin:
        options = options_for(origin, time_limit=1.0)
        with pytest.raises(UnreachableError, match="no usable answer to GET"):
            run_http(options)


def only_gets(post: Talk) -> Talk:
    """Well-behaved until it is asked to infer."""

    def talk(connected: socket.socket) -> None:
        if connected.recv(65_536).startswith(b"GET"):
            connected.sendall(OK)
        else:
            post(connected)

    return talk


def endless_body(connected: socket.socket) -> None:
    connected.sendall(HEAD)
    while True:
        connected.sendall(b"10000\r\n" + b"x" * 65_536 + b"\r\n")


def endless_stream(connected: socket.socket) -> None:
    connected.sendall(HEAD)
    event = b'data: {"choices": [{"index": 0, "delta": {"content": "x"}}]}\n\n'
    while True:
        connected.sendall(b"%x\r\n%b\r\n" % (len(event), event))


def deep(connected: socket.socket) -> None:
    body = b"[" * 200_000
    connected.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    connected.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


@pytest.mark.parametrize("post", [silent, closing, garbage, endless_body, endless_stream, deep])
def test_no_inference(post: Talk) -> None:
    """The run ends in time, nothing passes that was not seen, and no check is at fault."""
    with talking(only_gets(post)) as origin:
        report = in_time(lambda: run_http(options_for(origin, time_limit=2.0, jobs=4)))
    assert report.verdict.exit_code != 0
    faults = [each.detail for each in report.judgements if "the check itself" in each.detail]
    assert faults == []
    ordinary = next(each for each in report.judgements if each.requirement == "OE-HTTP-CHAT-034")
    assert ordinary.status in {Status.FAIL, Status.FLAKY, Status.ERROR}


def in_time(run: Callable[[], Report]) -> Report:
    """What it returns, within SECONDS."""
    found: list[Report] = []
    thread = threading.Thread(target=lambda: found.append(run()), daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert found, f"no end within {SECONDS:.0f} s"
    return found[0]
