"""Rules about KV events and prefill streams, which few engines show."""

from __future__ import annotations

import pytest

from conformance.checks.client_dynamo.kv_rules import source_breach, stream_breach
from conformance.checks.client_dynamo.need import ranks
from oe_wire import v1


def source(
    rank: int | None = 0, host: str = "engine", port: int = 1, **kind: str
) -> v1.KvEventSource:
    """A source that can be used unless told otherwise."""
    made = v1.KvEventSource(transport="zmq", encoding="msgpack", data_parallel_rank=rank)
    made.endpoint_addr.CopyFrom(v1.KvEndpoint(host=host, port=port, protocol="tcp"))
    for name, value in kind.items():
        setattr(made, name, value)
    return made


def test_right_sources() -> None:
    """One for each rank, in any order; unknown transports are passed over."""
    assert source_breach([source(1), source(0)], range(2)) is None
    assert source_breach([source(), source(transport="carrier")], range(1)) is None


@pytest.mark.parametrize(
    "sources",
    [
        [source(None)],
        [source(host="0.0.0.0")],
        [source(host="*")],
        [source(port=0)],
        [source(port=70000)],
        [source(), source()],
        [source(1)],
        [source(encoding="protobuf")],
        [source(transport="carrier")],
    ],
)
def test_wrong_sources(sources: list[v1.KvEventSource]) -> None:
    """Each is found: no rank, no host, no port, a rank twice, missing, or of a strange kind."""
    assert source_breach(sources, range(1)) is not None


def stored(**changes: object) -> v1.KvEvent:
    """A stored block of two tokens."""
    event = v1.KvEvent()
    event.block_stored.block_size = 2
    event.block_stored.token_ids.extend((1, 2))
    event.block_stored.block_hashes.add(value=b"-12", encoding="decimal_int64")
    for name, value in changes.items():
        setattr(event.block_stored, name, value)
    return event


def batches(
    *numbers: int, events: tuple[v1.KvEvent, ...] = (), rank: int = 0
) -> list[v1.SubscribeKvEventsResponse]:
    """Batches with these sequence numbers."""
    return [
        v1.SubscribeKvEventsResponse(
            batch=v1.KvEventBatch(sequence_number=number, data_parallel_rank=rank, events=events)
        )
        for number in numbers
    ]


def test_right_streams() -> None:
    """The first number is free, then each follows the one before."""
    assert stream_breach(batches(7, 8, 9, events=(stored(),)), 0) is None
    cleared = v1.KvEvent(all_blocks_cleared=v1.AllBlocksCleared())
    assert stream_breach(batches(1, events=(cleared,)), 0) is None
    elsewhere = stored(medium=v1.STORAGE_MEDIUM_DISK, block_size=0)
    assert stream_breach(batches(1, events=(elsewhere,)), 0) is None


def test_wrong_numbers_and_ranks() -> None:
    """A gap, a repetition, another rank and an error are found where they are."""
    assert stream_breach(batches(1, 3), 0) == ("sequence_number 2", "3", 1)
    assert stream_breach(batches(1, 1), 0) == ("sequence_number 2", "1", 1)
    assert stream_breach(batches(1, rank=1), 0) is not None
    failed = v1.SubscribeKvEventsResponse(error=v1.EngineError())
    assert stream_breach([*batches(1), failed], 0) is not None


def hashed(value: bytes, encoding: str = "decimal_int64") -> v1.KvEvent:
    """A removed block."""
    event = v1.KvEvent()
    event.block_removed.block_hashes.add(value=value, encoding=encoding)
    return event


@pytest.mark.parametrize(
    "event",
    [
        v1.KvEvent(),
        stored(block_size=0),
        stored(block_size=3),
        stored(lora_id=1),
        hashed(b"012"),
        hashed(b"+1"),
        hashed(b"12", "int64"),
    ],
)
def test_wrong_events(event: v1.KvEvent) -> None:
    """Each is found: nothing set, wrong sizes, an adapter without a name, other hashes."""
    assert stream_breach(batches(1, events=(event,)), 0) is not None


def test_ranks_of_an_engine() -> None:
    """From the start rank on, or from the only rank, as many as there are."""
    assert ranks(v1.ServerInfo()) == range(1)
    several = v1.ParallelismInfo(data_parallel_start_rank=2, data_parallel_size=2)
    assert ranks(v1.ServerInfo(parallelism=several)) == range(2, 4)
    one = v1.ParallelismInfo(data_parallel_rank=3, data_parallel_size=1)
    assert ranks(v1.ServerInfo(parallelism=one)) == range(3, 4)
