"""Reasons to refuse the `openengine-` metadata of a data-plane call: META-001 to 006, and 008."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from conformance.oracle.expectation import Reason, broken, unknown
from conformance.wire.declared import Declared
from conformance.wire.target import legal_metadata
from conformance.wire.transcript import Metadata
from oe_wire import v1

PREFIX = "openengine-"
PRIORITY = "openengine-priority"
TARGET_RANK = "openengine-target-dp-rank"
ROUTING_KEY = "openengine-routing-key"
KNOWN_KEYS = (PRIORITY, TARGET_RANK, ROUTING_KEY)

# Shipped servers and clients agree on these types; a sign belongs to the priority only.
PRIORITIES = range(-(2**31), 2**31)
RANKS = range(2**32)
_DECIMAL = re.compile(r"-?[0-9]{1,40}")
# Spellings that one parser takes and another does not, and no rule speaks of: 007 and -0.
_PLAIN = re.compile(r"0|-?[1-9][0-9]*")


def metadata_reasons(
    request: v1.GenerateRequest, metadata: Metadata, declared: Declared
) -> Iterator[Reason]:
    """Every rule that this metadata breaks; keys of others never count."""
    ours = [(key, value) for key, value in metadata if key.startswith(PREFIX)]
    if not legal_metadata(metadata):
        yield unknown("metadata that gRPC cannot carry, so the engine never sees it")
        return
    repeated = {key for key, count in Counter(key for key, _ in ours).items() if count > 1}
    for key in sorted(repeated):
        # Whether a key that nobody knows may be repeated is left open by META-002 and META-008.
        yield broken("META-002") if key in KNOWN_KEYS else unknown("a repeated unknown key")
    for key, value in ours:
        if isinstance(value, str):
            yield from _value_reasons(key, value, request, declared, single=key not in repeated)


def malformed(value: str, allowed: range) -> bool | None:
    """Whether a value is not a decimal integer of this range; None where rules leave it open.

    gRPC may strip spaces around a value, so the engine may see it without them.
    """
    bare = value.strip(" ")
    if _DECIMAL.fullmatch(bare) is None or int(bare) not in allowed:
        return True
    return None if bare != value or _PLAIN.fullmatch(bare) is None else False


def _value_reasons(
    key: str, value: str, request: v1.GenerateRequest, declared: Declared, *, single: bool
) -> Iterator[Reason]:
    if key in {PRIORITY, TARGET_RANK}:
        bad = malformed(value, PRIORITIES if key == PRIORITY else RANKS)
        if bad:
            yield broken("META-001")
        elif bad is None:
            yield unknown(f"a spelling of {key} that parsers differ on")
        elif single and key == TARGET_RANK:
            yield from _rank_reasons(int(value), request, declared)
        elif single and declared.legacy:
            yield unknown("priority on a v0.1.0 engine")
    elif key == ROUTING_KEY and not value:
        yield broken("META-003")
    elif key == ROUTING_KEY and not value.strip(" "):
        yield unknown("a routing key of spaces, which gRPC may strip")


def _rank_reasons(rank: int, request: v1.GenerateRequest, declared: Declared) -> Iterator[Reason]:
    if request.kv.HasField("session") and rank != request.kv.session.dp_rank:
        yield broken("META-005")
    ranks = reported_ranks(declared)
    if ranks is None:
        yield unknown("the data-parallel range is unreported")
    elif rank not in ranks:
        yield broken("META-004")


def reported_ranks(declared: Declared) -> range | None:
    """The ranks behind this endpoint; None when the engine does not report their number."""
    engine = declared.engine
    if not isinstance(engine, v1.EngineInfo | v1.ServerInfo):
        return None
    parallelism = engine.parallelism
    if not parallelism.data_parallel_size:
        return None
    first = parallelism.data_parallel_start_rank
    return range(first, first + parallelism.data_parallel_size)
