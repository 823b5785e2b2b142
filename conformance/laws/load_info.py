"""Laws about one LoadInfo, whether GetLoad answered with it or a snapshot carries it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import grpc

from conformance.laws.law import Finding, Ruling, law
from conformance.laws.load_stream import WATCH_LOAD, combined
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

GET_LOAD = "openengine.v1.OpenEngineObservability/GetLoad"
CONTROL_GET_LOAD = "openengine.v1.Control/GetLoad"
GET_LOADS = frozenset({GET_LOAD, CONTROL_GET_LOAD})
EVERY_LOAD = GET_LOADS | {WATCH_LOAD}
# What LoadInfo and RankLoadInfo both have: a total is the sum over the ranks.
SUMMED = (
    "running_requests",
    "queued_requests",
    "used_kv_blocks",
    "total_kv_blocks",
    "prefill_batch_size",
    "decode_batch_size",
)
SCALARS = frozenset(field.name for field in v1.LoadInfo.DESCRIPTOR.fields) - {
    "instance_id",
    "ranks",
    "attributes",
}


def loads(transcript: Transcript) -> Iterator[tuple[int, v1.LoadInfo]]:
    """Every LoadInfo of the call with the position of its message."""
    for at, message in enumerate(transcript.messages):
        if isinstance(message, v1.LoadInfo):
            yield at, message
        elif isinstance(message, v1.WatchLoadResponse) and message.snapshot.HasField("load"):
            yield at, message.snapshot.load


def measured(load: v1.LoadInfo | v1.RankLoadInfo) -> dict[str, int]:
    """The scalars that are present, zeros too."""
    return {field.name: value for field, value in load.ListFields() if field.name in SCALARS}


def reported(declared: Declared) -> frozenset[str]:
    """The scalars that are said to be in every sample; names that LoadInfo lacks are left out."""
    scope = declared.engine_scope
    names = () if scope is None else scope.observability.load.reported_fields
    return frozenset(names) & SCALARS


def served_ranks(declared: Declared) -> tuple[int, ...] | None:
    """The data-parallel ranks behind the endpoint; None when their number is not reported."""
    parallelism = getattr(declared.engine, "parallelism", None)
    if parallelism is None or not parallelism.data_parallel_size:
        return None
    first = parallelism.data_parallel_start_rank
    return tuple(range(first, first + parallelism.data_parallel_size))


@law("OE-LOAD-004", methods=EVERY_LOAD)
def reported_fields_are_present(transcript: Transcript, declared: Declared) -> Ruling:
    """What is listed in reported_fields is in every LoadInfo, also when it is zero."""
    names = reported(declared)
    if not names:
        return None
    return combined(_lacks(at, info, names) for at, info in loads(transcript))


def _lacks(at: int, info: v1.LoadInfo, names: Iterable[str]) -> Ruling:
    absent = sorted(frozenset(names) - measured(info).keys())
    if absent:
        return Finding("every field of reported_fields", f"no {', '.join(absent[:3])}", at)
    return True


@law("OE-LOAD-006", methods=GET_LOADS)
def ranks_as_asked(transcript: Transcript, declared: Declared) -> Ruling:
    """No ranks unless they are asked for; then each served one once, ascending, with its number.

    Engines that declare no load limits may leave the ranks out; whatever they list is judged.
    """
    request = transcript.request
    if not isinstance(request, v1.GetLoadRequest):
        return None
    asked = request.include_per_rank
    scope = declared.engine_scope
    supported = None if scope is None else scope.observability.load.supports_per_rank
    if asked and supported is False:
        return _refused(transcript)
    return combined(
        _ranks(at, info, asked, served_ranks(declared) if supported else None)
        for at, info in loads(transcript)
    )


def _refused(transcript: Transcript) -> Ruling:
    """Whether ranks that are not supported were refused; other failures say nothing."""
    if transcript.ending.ok:
        return Finding("INVALID_ARGUMENT for ranks that are not supported", "OK")
    return True if transcript.ending.code is grpc.StatusCode.INVALID_ARGUMENT else None


def _ranks(at: int, info: v1.LoadInfo, asked: bool, served: tuple[int, ...] | None) -> Ruling:
    if not asked:
        count = len(info.ranks)
        return Finding("no ranks without include_per_rank", f"{count} ranks", at) if count else True
    if any(not rank.HasField("data_parallel_rank") for rank in info.ranks):
        return Finding("data_parallel_rank present on every rank", "a rank without it", at)
    listed = tuple(rank.data_parallel_rank for rank in info.ranks)
    if any(before >= after for before, after in pairwise(listed)):
        return Finding("each rank once, ascending", f"ranks {listed}", at)
    if served is None:
        return True if listed else None
    return True if listed == served else Finding(f"ranks {served}", f"ranks {listed}", at)


@law("OE-LOAD-007", methods=EVERY_LOAD)
def totals_are_sums(transcript: Transcript, declared: Declared) -> Ruling:
    """A total equals the sum over the ranks, where all of them are there and report it.

    A stream that was asked for some ranks shows those only; its totals are not judged.
    """
    served = served_ranks(declared)
    return combined(_sums(at, info, served) for at, info in loads(transcript))


def _sums(at: int, info: v1.LoadInfo, served: tuple[int, ...] | None) -> Ruling:
    listed = sorted(rank.data_parallel_rank for rank in info.ranks)
    if not listed or served is None or tuple(listed) != served:
        return None
    totals, parts = measured(info), [measured(rank) for rank in info.ranks]
    for name in SUMMED:
        if name not in totals or not all(name in part for part in parts):
            continue
        added = sum(part[name] for part in parts)
        if totals[name] != added:
            return Finding(f"{name} {added}, the sum over the ranks", f"{totals[name]}", at)
    return True


@law("OE-LOAD-008", methods=EVERY_LOAD)
def blocks_agree(transcript: Transcript, declared: Declared) -> Ruling:
    """No more blocks are used than there are, and there are as many as discovery says."""
    capacity = getattr(declared.engine, "capacity", None)
    there = None
    if capacity is not None and capacity.HasField("total_kv_blocks"):
        there = capacity.total_kv_blocks
    return combined(_blocks(at, info, there) for at, info in loads(transcript))


def _blocks(at: int, info: v1.LoadInfo, there: int | None) -> Ruling:
    rulings = [_used(at, info), *(_used(at, rank) for rank in info.ranks)]
    if there is not None and info.HasField("total_kv_blocks"):
        total = info.total_kv_blocks
        expected = f"total_kv_blocks {there}, as discovery has it"
        rulings.append(True if total == there else Finding(expected, f"{total}", at))
    return combined(rulings)


def _used(at: int, each: v1.LoadInfo | v1.RankLoadInfo) -> Ruling:
    if not (each.HasField("used_kv_blocks") and each.HasField("total_kv_blocks")):
        return None
    if each.used_kv_blocks <= each.total_kv_blocks:
        return True
    used = f"{each.used_kv_blocks} of {each.total_kv_blocks}"
    return Finding("used_kv_blocks at most total_kv_blocks", used, at)


LAWS = (reported_fields_are_present, ranks_as_asked, totals_are_sums, blocks_agree)
