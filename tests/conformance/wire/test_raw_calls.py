"""Calls of bytes that need not parse."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from conformance.wire.raw import raw_call
from conformance.wire.transcript import Origin
from oe_wire import v1
from tests.conformance.wire.servers import (
    GENERATE,
    LONG,
    Connect,
    Paths,
    Serve,
    pool,
)


def test_raw_bytes_that_do_not_parse(serve: Serve, connect: Connect) -> None:
    """Malformed bytes are sent as they are; the transcript has no request and the status."""
    connection = connect(serve({"Inference": {"Generate": lambda request, context: iter(())}}))
    transcript = raw_call(connection, GENERATE, [b"\x0a\xff"], deadline=LONG)
    assert transcript.request is None
    assert transcript.request_bytes == b"\x0a\xff"
    assert transcript.rejected


def test_raw_bytes_that_parse(serve: Serve, connect: Connect) -> None:
    """Bytes that are a request after all have it in the transcript."""
    data = v1.GenerateRequest(request_id="r").SerializeToString()
    connection = connect(serve({"Inference": {"Generate": lambda request, context: iter(())}}))
    transcript = raw_call(connection, GENERATE, [data], deadline=LONG)
    assert transcript.request == v1.GenerateRequest(request_id="r")
    assert transcript.ending.ok


@pytest.mark.parametrize("count", [0, 2])
def test_raw_message_counts(serve: Serve, connect: Connect, count: int) -> None:
    """No message and two messages can be sent where a right client sends one."""
    seen: list[int] = []

    def stream(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        seen.append(len(list(messages)))
        yield b""

    server = grpc.server(pool())
    server.add_generic_rpc_handlers((Paths({}, streams={GENERATE.path: stream}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    connection = connect(f"dns:///127.0.0.1:{port}")
    transcript = raw_call(connection, GENERATE, [b"\x0a\x01a"] * count, deadline=LONG)
    server.stop(0).wait(LONG)
    assert seen == [count]
    assert transcript.request is None
    assert transcript.request_bytes == b"\x0a\x01a" * count
    assert transcript.ending.ok


def test_raw_call_has_its_own_deadline(silent: str, connect: Connect) -> None:
    """A server that never answers costs the deadline and no more."""
    transcript = raw_call(connect(silent), GENERATE, [], deadline=0.1)
    assert transcript.ending.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert transcript.ending.origin is Origin.LOCAL
