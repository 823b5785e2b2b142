"""Metadata of calls: what reaches the engine, and what never leaves."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from conformance.errors import HarnessError
from conformance.wire.target import Target
from conformance.wire.transcript import Origin
from oe_wire import v1
from tests.conformance.wire.servers import (
    GENERATE,
    LONG,
    SERVER_INFO,
    Connect,
    Serve,
)


def test_metadata_reaches_the_engine_and_credentials_stay_out(
    serve: Serve, connect: Connect
) -> None:
    """The target's metadata is sent with a call's own, and only the latter is recorded."""
    seen: list[tuple[str, str | bytes]] = []

    def info(request: Any, context: grpc.ServicerContext) -> v1.ServerInfo:
        seen.extend((str(key), value) for key, value in context.invocation_metadata())
        return v1.ServerInfo()

    address = serve({"Control": {"GetServerInfo": info}})
    connection = connect(Target(address, metadata=(("authorization", "s3cret"),)))
    transcript = connection.call(
        SERVER_INFO, v1.GetServerInfoRequest(), metadata=(("p", "1"), ("p", "2")), deadline=LONG
    )
    assert [pair for pair in seen if pair[0] != "user-agent"] == [
        ("authorization", "s3cret"),
        ("p", "1"),
        ("p", "2"),
    ]
    assert "s3cret" not in repr(transcript)


@pytest.mark.parametrize("pair", [("Upper", "x"), ("a", "é"), ("a", "x\n")])
def test_metadata_that_grpc_refuses_is_local(
    serve: Serve, connect: Connect, pair: tuple[str, str]
) -> None:
    """The client library's INTERNAL is not blamed on the engine."""
    connection = connect(serve({"Inference": {"Generate": lambda request, context: iter(())}}))
    transcript = connection.call(GENERATE, v1.GenerateRequest(), metadata=(pair,), deadline=LONG)
    assert transcript.ending.code is grpc.StatusCode.INTERNAL
    assert transcript.ending.origin is Origin.LOCAL


@pytest.mark.parametrize("pair", [("a-bin", "text"), ("a", b"bytes")])
def test_metadata_of_the_wrong_type(connect: Connect, pair: tuple[str, str | bytes]) -> None:
    """A check that mixes up text and binary metadata is a defect of the suite."""
    with pytest.raises(HarnessError, match=f"metadata '{pair[0]}'"):
        connect("dns:///127.0.0.1:1").start(
            GENERATE, v1.GenerateRequest(), metadata=(pair,), deadline=1
        )
