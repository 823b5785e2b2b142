"""Laws about one LoadInfo, on answers of GetLoad and on snapshots of a stream."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.message import Message

from conformance.laws import LAWS, Finding, Ruling
from conformance.laws.load_info import CONTROL_GET_LOAD, GET_LOAD, SUMMED
from conformance.laws.load_stream import WATCH_LOAD
from conformance.wire.declared import Declared, TargetClass
from conformance.wire.transcript import Ending, Event, Origin, Transcript
from oe_wire import v1

NUMBERS = dict.fromkeys(SUMMED, 3)


def declared(*, per_rank: bool = True, ranks: int = 2, reported: tuple[str, ...] = ()) -> Declared:
    """An engine of so many ranks with 10 blocks each, the first of them rank 4."""
    info = v1.EngineInfo(
        parallelism=v1.ParallelismInfo(data_parallel_size=ranks, data_parallel_start_rank=4),
        capacity=v1.DeploymentCapacity(total_kv_blocks=10 * ranks),
    )
    load = v1.LoadCapabilities(supports_per_rank=per_rank, reported_fields=reported)
    scope = v1.Capabilities(observability=v1.ObservabilityCapabilities(load=load))
    return Declared(TargetClass.PROFILE_AWARE, "v0.1.0", engine_info=info, engine_scope=scope)


def legacy() -> Declared:
    """An engine that serves only the services of v0.1.0."""
    return Declared(TargetClass.LEGACY, "v0.1.0", server_info=v1.ServerInfo())


def load(*ranks: int, **numbers: int) -> v1.LoadInfo:
    """The load of these ranks, each with 3 of everything and 10 blocks, and their sums."""
    info = v1.LoadInfo(ranks=[_rank(number) for number in ranks])
    for name in SUMMED if ranks else ():
        setattr(info, name, sum(getattr(rank, name) for rank in info.ranks))
    for name, value in numbers.items():
        setattr(info, name, value)
    return info


def _rank(number: int) -> v1.RankLoadInfo:
    return v1.RankLoadInfo(data_parallel_rank=number, **{**NUMBERS, "total_kv_blocks": 10})


def answered(
    *messages: Message,
    per_rank: bool = False,
    method: str = GET_LOAD,
    code: grpc.StatusCode = grpc.StatusCode.OK,
) -> Transcript:
    """A finished call with these messages."""
    request = v1.GetLoadRequest(include_per_rank=per_rank)
    events = tuple(Event(0.1 * at, message) for at, message in enumerate(messages))
    ending = Ending(1.0, code, "", Origin.REMOTE)
    return Transcript(method, request, request.SerializeToString(), (), events, ending, (), 5.0)


def snapshot(info: v1.LoadInfo) -> Transcript:
    """A stream of settings and one snapshot."""
    settings = v1.WatchLoadResponse(settings=v1.WatchLoadSettings())
    told = v1.WatchLoadResponse(snapshot=v1.LoadSnapshot(load=info))
    return answered(settings, told, method=WATCH_LOAD)


def ruling(row: str, call: Transcript, engine: Declared) -> Ruling:
    law = LAWS[f"OE-LOAD-{row}"]
    assert law.applies_to(call)
    return law.judge(call, engine)


def broken(row: str, call: Transcript, engine: Declared) -> bool:
    return isinstance(ruling(row, call, engine), Finding)


def test_reported_fields() -> None:
    """Every listed field has to be there, at 0 too; unknown names and other fields are nothing."""
    engine = declared(reported=("running_requests", "queued_requests", "no_such_field", "ranks"))
    whole = load(running_requests=0, queued_requests=0)
    assert ruling("004", answered(whole), engine) is True
    assert ruling("004", snapshot(whole), engine) is True
    assert ruling("004", answered(whole, method=CONTROL_GET_LOAD), engine) is True
    assert broken("004", answered(load(running_requests=0)), engine)
    assert broken("004", snapshot(load(queued_requests=0)), engine)
    assert ruling("004", answered(whole), declared()) is None
    assert ruling("004", answered(whole), legacy()) is None


@pytest.mark.parametrize("ranks", [(4,), (5, 4), (4, 4), (4, 5, 6), ()])
def test_wrong_ranks(ranks: tuple[int, ...]) -> None:
    """Each served rank has to be there once, ascending."""
    assert broken("006", answered(load(*ranks), per_rank=True), declared())


def test_right_ranks() -> None:
    """All when they are asked for, none otherwise; the number is present on each."""
    assert ruling("006", answered(load(4, 5), per_rank=True), declared()) is True
    assert ruling("006", answered(load()), declared()) is True
    assert broken("006", answered(load(4, 5)), declared())
    unset = load(4, 5)
    unset.ranks[0].ClearField("data_parallel_rank")
    assert broken("006", answered(unset, per_rank=True), declared())


def test_ranks_that_are_not_supported() -> None:
    """They are refused with INVALID_ARGUMENT; other failures say nothing."""
    engine = declared(per_rank=False)
    refused = answered(per_rank=True, code=grpc.StatusCode.INVALID_ARGUMENT)
    assert ruling("006", refused, engine) is True
    assert broken("006", answered(load(4, 5), per_rank=True), engine)
    busy = answered(per_rank=True, code=grpc.StatusCode.UNAVAILABLE)
    assert ruling("006", busy, engine) is None


def test_ranks_of_legacy_engines() -> None:
    """They may leave the ranks out; what they list has to make sense all the same."""
    alias = CONTROL_GET_LOAD
    assert ruling("006", answered(load(), per_rank=True, method=alias), legacy()) is None
    assert ruling("006", answered(load(0, 1), per_rank=True, method=alias), legacy()) is True
    assert broken("006", answered(load(1, 0), per_rank=True, method=alias), legacy())
    assert broken("006", answered(load(0), method=alias), legacy())


@pytest.mark.parametrize("name", SUMMED)
def test_totals(name: str) -> None:
    """Each total has to be the sum, where both levels report it and every rank is there."""
    whole = load(4, 5)
    assert ruling("007", answered(whole, per_rank=True), declared()) is True
    wrong = load(4, 5, **{name: getattr(whole, name) + 1})
    assert broken("007", answered(wrong, per_rank=True), declared())
    assert broken("007", snapshot(wrong), declared())
    assert ruling("007", snapshot(load(4, **{name: 99})), declared()) is None
    wrong.ranks[1].ClearField(name)  # type: ignore[arg-type]
    assert ruling("007", answered(wrong, per_rank=True), declared()) is True
    assert ruling("007", answered(load(running_requests=1)), declared()) is None


def test_blocks() -> None:
    """No more used than there are, on each level; as many as discovery says."""
    right = load(4, 5)
    assert ruling("008", answered(right), declared()) is True
    assert ruling("008", snapshot(right), declared()) is True
    assert broken("008", answered(load(4, 5, total_kv_blocks=21)), declared())
    assert broken("008", answered(load(used_kv_blocks=3, total_kv_blocks=2)), legacy())
    right.ranks[1].used_kv_blocks = 11
    assert broken("008", answered(right), declared())
    assert ruling("008", answered(load(used_kv_blocks=3)), declared()) is None
    assert ruling("008", answered(load(used_kv_blocks=3, total_kv_blocks=9)), legacy()) is True
