"""LoadInfo: totals, ranks, and agreement with what discovery says."""

import time

import pytest

from oe_wire import v1
from reference_engine.engine.load import LoadSnapshot
from reference_engine.server import load as module
from reference_engine.server.deployment import Deployment, RequestLimits, ServedModel
from reference_engine.server.load import LoadClock, load_info

DEPLOYMENT = Deployment(
    instance_id="i",
    version="1",
    started_at_unix_nanos=1,
    model=ServedModel("m", (), 10, 20),
    limits=RequestLimits(),
    kv_block_size=16,
    total_kv_blocks=20,
    max_running=4,
    max_batched_tokens=8,
    data_parallel_size=2,
)
LOADS = (
    LoadSnapshot(
        running_requests=3,
        queued_requests=1,
        used_blocks=4,
        total_blocks=10,
        running_tokens=50,
        waiting_tokens=7,
        prefill_batch_size=1,
        decode_batch_size=2,
    ),
    LoadSnapshot(total_blocks=10),
)


def test_totals_are_sums():
    """Without ranks asked for there are only totals, each of them present, zeros too."""
    info = load_info(DEPLOYMENT, LOADS, 5)
    assert info == v1.LoadInfo(
        instance_id="i",
        timestamp_unix_nanos=5,
        running_requests=3,
        queued_requests=1,
        active_kv_sessions=0,
        used_kv_blocks=4,
        total_kv_blocks=DEPLOYMENT.total_kv_blocks,
        running_tokens=50,
        waiting_tokens=7,
        prefill_batch_size=1,
        decode_batch_size=2,
    )
    idle = load_info(DEPLOYMENT, LOADS[1:], 5)
    for field in v1.LoadInfo.DESCRIPTOR.fields:
        if field.name not in ("attributes", "ranks"):
            assert field.name == "instance_id" or idle.HasField(field.name)


@pytest.mark.parametrize(("asked", "given"), [((1, 0, 1), [0, 1]), ((1,), [1]), ((), [])])
def test_ranks(asked, given):
    """Each asked rank comes once, ascending, with its own numbers and its number also when 0."""
    info = load_info(DEPLOYMENT, LOADS, 5, asked)
    assert [rank.data_parallel_rank for rank in info.ranks] == given
    for rank in info.ranks:
        assert rank.HasField("data_parallel_rank")
        load = LOADS[rank.data_parallel_rank]
        assert rank.running_requests == load.running_requests
        assert rank.used_kv_blocks == load.used_blocks
        assert rank.total_kv_blocks == load.total_blocks
        assert rank.decode_batch_size == load.decode_batch_size
        assert rank.HasField("queued_requests")


def test_the_clock_never_goes_back(monkeypatch):
    """A machine clock that is set back neither takes the time stamps with it nor stops them."""
    clock = LoadClock()
    first = clock.now()
    assert first <= time.time_ns()
    monkeypatch.setattr(module.time, "time_ns", lambda: first - 3_600_000_000_000)
    second = clock.now()
    assert first < second < clock.now()
