"""Calls whose reader stops reading, against a server that counts what it could write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from conformance.wire.connection import Connection
from conformance.wire.transcript import ActionKind, Origin
from oe_wire import v1
from oe_wire.services import METHODS
from tests.conformance.wire.conftest import LONG, Serve

WATCH_LOAD = METHODS["openengine.v1.OpenEngineObservability/WatchLoad"]
REQUEST = v1.WatchLoadRequest()
MESSAGES = 2000


@pytest.fixture
def written() -> Counter[str]:
    """How many messages the server got rid of, by value of the metadata key `reader`."""
    return Counter()


@pytest.fixture
def connection(
    serve: Serve, connect: Callable[..., Connection], written: Counter[str]
) -> Connection:
    def watch(_request: Any, context: grpc.ServicerContext) -> Iterator[v1.WatchLoadResponse]:
        reader = dict(context.invocation_metadata())["reader"]
        for number in range(MESSAGES):
            yield v1.WatchLoadResponse(sequence_number=number + 1, instance_id="x" * 100)
            written[str(reader)] += 1

    return connect(serve({"OpenEngineObservability": {"WatchLoad": watch}}))


def _read_all(connection: Connection, reader: str) -> int:
    call = connection.call(WATCH_LOAD, REQUEST, metadata=(("reader", reader),), deadline=LONG)
    return len(call.events)


def test_stalled_reader_holds_the_server_up(connection: Connection, written: Counter[str]) -> None:
    """While another reader gets everything, the server cannot write to a stalled one; once that
    reads on it gets everything too.
    """
    slow = connection.start_slow(WATCH_LOAD, REQUEST, metadata=(("reader", "slow"),), deadline=LONG)
    assert slow.wait_event(1)
    slow.stall()
    assert _read_all(connection, "fast") == MESSAGES
    stuck = len(slow.events)
    assert stuck <= written["slow"] + 1 < MESSAGES
    assert _read_all(connection, "another") == MESSAGES
    assert len(slow.events) <= stuck + 1
    slow.resume()
    transcript = slow.finish()
    assert transcript.ending.ok
    assert transcript.acted(ActionKind.STALL)
    assert [m.sequence_number for m in transcript.messages] == list(range(1, MESSAGES + 1))  # type: ignore[attr-defined]


def test_stalled_call_can_be_cancelled(connection: Connection) -> None:
    """Cancelling ends a stalled call, although its reader is not reading."""
    slow = connection.start_slow(WATCH_LOAD, REQUEST, metadata=(("reader", "s"),), deadline=LONG)
    slow.stall()
    slow.cancel()
    slow.stall()
    transcript = slow.finish()
    assert transcript.ending.code is grpc.StatusCode.CANCELLED
    assert transcript.acted(ActionKind.CANCEL)


def test_deadline_ends_a_stalled_call(connection: Connection) -> None:
    """The client's own deadline is seen by a stalled reader."""
    slow = connection.start_slow(WATCH_LOAD, REQUEST, metadata=(("reader", "s"),), deadline=0.3)
    slow.stall()
    transcript = slow.finish()
    assert transcript.ending.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert transcript.ending.origin is Origin.LOCAL


def test_closed_connection_starts_no_slow_call(connection: Connection) -> None:
    """After `cancel_all` a slow call is cancelled before it begins."""
    connection.cancel_all()
    slow = connection.start_slow(WATCH_LOAD, REQUEST, metadata=(("reader", "s"),), deadline=LONG)
    transcript = slow.finish()
    assert transcript.ending.code is grpc.StatusCode.CANCELLED
    assert not transcript.events


def test_cancel_all_ends_a_stalled_call(connection: Connection) -> None:
    """Ctrl-C ends calls that are stalled as well."""
    slow = connection.start_slow(WATCH_LOAD, REQUEST, metadata=(("reader", "s"),), deadline=LONG)
    slow.stall()
    connection.cancel_all()
    assert slow.finish().ending.code is grpc.StatusCode.CANCELLED
