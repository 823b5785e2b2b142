"""What makes KV event sources and batches usable for a router; pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from google.protobuf.message import Message

from oe_wire import v1

TRANSPORTS = {("zmq", "msgpack"), ("grpc", "protobuf")}
WILDCARDS = frozenset({"", "*", "0.0.0.0", "::", "[::]"})  # noqa: S104 - addresses to refuse
HASH_ENCODING = "decimal_int64"
DECIMAL = re.compile(rb"0|-?[1-9][0-9]{0,18}")

Breach = tuple[str, str]


def source_breach(sources: Iterable[v1.KvEventSource], expected: Collection[int]) -> Breach | None:
    """What is wrong with the sources, as (expected, actual); None when all is well.

    expected: the data-parallel ranks of the engine. Sources of an unknown transport are passed
    over, so their ranks count as missing.
    """
    found: list[int] = []
    for source in sources:
        if (source.transport, source.encoding) not in TRANSPORTS:
            continue
        if not source.HasField("data_parallel_rank"):
            return "data_parallel_rank on every source", "absent"
        address = source.endpoint_addr
        if address.host in WILDCARDS:
            return "a host that can be connected to", repr(address.host)
        if not 0 < address.port < 65536:
            return "a port in 1..65535", str(address.port)
        found.append(source.data_parallel_rank)
    if sorted(found) != sorted(expected):
        return f"one source for each of the ranks {sorted(expected)}", f"ranks {sorted(found)}"
    return None


def stream_breach(messages: Iterable[Message], rank: int) -> tuple[str, str, int] | None:
    """What is wrong with a subscription, as (expected, actual, event)."""
    last: int | None = None
    for at, message in enumerate(messages):
        if not isinstance(message, v1.SubscribeKvEventsResponse):
            continue
        if not message.HasField("batch"):
            return "batches until the subscription ends", "another event", at
        batch = message.batch
        if batch.data_parallel_rank != rank:
            return f"batches of rank {rank}", f"one of rank {batch.data_parallel_rank}", at
        if last is not None and batch.sequence_number != last + 1:
            return f"sequence_number {last + 1}", str(batch.sequence_number), at
        last = batch.sequence_number
        for event in batch.events:
            breach = _event_breach(event)
            if breach is not None:
                return *breach, at
    return None


def _event_breach(event: v1.KvEvent) -> Breach | None:
    kind = event.WhichOneof("event")
    if kind is None:
        return "an event that is set", "none"
    if kind == "block_removed":
        return _hash_breach(event.block_removed.block_hashes)
    if kind != "block_stored":
        return None
    stored = event.block_stored
    if stored.medium not in {v1.STORAGE_MEDIUM_UNSPECIFIED, v1.STORAGE_MEDIUM_GPU}:
        return None  # the router does not look at other media
    count = stored.block_size * len(stored.block_hashes)
    if not stored.block_size or len(stored.token_ids) != count:
        return f"{count} token ids, in blocks of at least 1", f"{len(stored.token_ids)}"
    if stored.lora_id and not stored.lora_name:
        return "lora_name beside lora_id", "an empty one"
    return _hash_breach(stored.block_hashes)


def _hash_breach(hashes: Iterable[v1.KvBlockHash]) -> Breach | None:
    for each in hashes:
        if each.encoding != HASH_ENCODING:
            return f"hashes in {HASH_ENCODING}", f"encoding {each.encoding[:40]!r}"
        if not DECIMAL.fullmatch(each.value):
            return "hashes in canonical decimal text", "another spelling"
    return None
