"""Two ranks behind one server: choice, the same tokens, aborts, faults, and lost processes."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest

from oe_wire import health, v1
from reference_engine.engine import stream as streams
from reference_engine.engine.config import EngineConfig
from reference_engine.errors import ConfigError, EngineException
from reference_engine.ranks.start import start_ranks
from reference_engine.ranks.worker import RankSetup
from tests.reference_engine.ranks import models
from tests.reference_engine.server.running import (
    WINDOW,
    Client,
    Running,
    eventually,
    fake_model,
    finish,
    generate_request,
    long_request,
    serving,
)

CONFIG = EngineConfig(num_blocks=4 * WINDOW // 16, max_running=16, max_waiting=4)
RANKS = 2
GENERATE = "openengine.v1.Inference/Generate"


def rank(number: int | str) -> tuple[tuple[str, str], ...]:
    return (("openengine-target-dp-rank", str(number)),)


@contextmanager
def two_ranks() -> Iterator[Running]:
    ranks = start_ranks(RANKS, RankSetup(models.load, CONFIG, threads=1))
    try:
        with serving(fake_model(), CONFIG, ranks=ranks) as running:
            yield running
    finally:
        for one in ranks:
            one.stop()


@pytest.fixture(scope="module")
def engine() -> Iterator[Running]:
    with two_ranks() as running:
        yield running


def idle(engine: Running) -> bool:
    frontend = engine.app.frontend
    return (
        frontend.engine.num_open == 0
        and not frontend.table.streams()
        and engine.free_blocks == engine.total_blocks == RANKS * CONFIG.num_blocks
    )


def running_requests(engine: Running) -> list[int]:
    return [load.running_requests for load in engine.app.frontend.engine.loads]


def sampled(**changes: object) -> v1.GenerateRequest:
    request = generate_request("a prompt", sampling=v1.SamplingParams(num_sequences=2))
    request.sampling.temperature = 1.0
    request.sampling.seed = 11
    request.stopping.max_tokens = 24
    request.stopping.ignore_eos = True
    return request


def test_what_is_reported(engine):
    """Discovery tells the number of ranks and the capacity of all."""
    info = engine.call(
        "openengine.v1.OpenEngineDiscovery/GetEngineInfo", v1.GetEngineInfoRequest()
    ).message
    assert info.parallelism.data_parallel_size == RANKS
    assert info.parallelism.data_parallel_start_rank == 0
    assert not info.parallelism.HasField("data_parallel_rank")
    assert info.capacity.total_kv_blocks == RANKS * CONFIG.num_blocks
    assert info.capacity.max_running_requests == RANKS * CONFIG.max_running


def test_the_same_tokens_on_every_rank(engine):
    """Seeded and greedy output is that of an engine in this process, on either rank."""
    with serving(fake_model(), CONFIG) as single:
        for request in (sampled(), generate_request("another one")):
            expected = single.generate(request)
            for number in range(RANKS):
                outcome = engine.generate(request, metadata=rank(number))
                for index in range(request.sampling.num_sequences or 1):
                    assert outcome.text(index) == expected.text(index)
                    assert outcome.records(index) == expected.records(index)


@pytest.mark.parametrize("value", [RANKS, "-1", "x", ""])
def test_a_rank_that_is_not_there(engine, value):
    """A rank beyond the last, or no number at all, is INVALID_ARGUMENT."""
    outcome = engine.generate(generate_request(), metadata=rank(value))
    assert outcome.code is grpc.StatusCode.INVALID_ARGUMENT
    assert outcome.trailers["openengine-error-code"] == "ERROR_CODE_INVALID_ARGUMENT"


def test_a_rank_against_the_session(engine):
    """A rank that disagrees with kv.session.dp_rank is INVALID_ARGUMENT."""
    request = generate_request(kv=v1.KvOptions(session=v1.KvSessionRef(session_id="s", dp_rank=1)))
    outcome = engine.generate(request, metadata=rank(0))
    assert outcome.code is grpc.StatusCode.INVALID_ARGUMENT


def test_requests_are_spread(engine):
    """Without a target each request goes where the fewest are; aborts reach them all."""
    requests = [long_request() for _ in range(6)]
    calls = [engine.start_generate(request) for request in requests]
    for call in calls:
        next(call)
    assert eventually(lambda: running_requests(engine) == [3, 3])
    for request in requests:
        assert engine.abort(request.request_id).message.status == v1.ABORT_STATUS_ABORTED
    for call in calls:
        assert finish(call).ends()[0].reason == v1.FINISH_REASON_CANCELLED
    assert eventually(lambda: idle(engine))


def test_the_target_is_honoured(engine):
    """Requests for one rank run there, and its limit is its own."""
    calls = [engine.start_generate(long_request(), metadata=rank(1)) for _ in range(20)]
    for call in calls:
        call.initial_metadata()
    assert eventually(lambda: running_requests(engine) == [0, 20])
    full = engine.generate(generate_request(), metadata=rank(1))
    assert full.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert engine.generate(generate_request(), metadata=rank(0)).code is grpc.StatusCode.OK
    everything = v1.AbortRequest(all_requests=v1.AllRequests())
    status = engine.call("openengine.v1.Control/Abort", everything).message.status
    assert status == v1.ABORT_STATUS_ABORTED
    for call in calls:
        assert finish(call).ends()[0].reason == v1.FINISH_REASON_CANCELLED
    assert eventually(lambda: idle(engine))


def test_a_cancelled_call_frees_its_rank(engine):
    """A caller that goes away takes its request with it."""
    call = engine.start_generate(long_request(), metadata=rank(1))
    next(call)
    call.cancel()
    assert eventually(lambda: idle(engine))


def test_a_lagging_reader(engine, monkeypatch):
    """Its request is set aside on its rank and goes on without a loss."""
    monkeypatch.setattr(streams, "MOST_WAITING", 2000)
    request = generate_request(
        response=v1.ResponseOptions(
            return_output_logprobs=True,
            output_candidates=v1.CandidateTokenSelection(all=v1.AllCandidates()),
        )
    )
    request.stopping.max_tokens = 60
    request.stopping.ignore_eos = True
    client = Client(engine.app.address, [("grpc.http2.bdp_probe", 0)])
    lagging = client.start_generate(request)
    table = engine.app.frontend.table
    assert eventually(
        lambda: (
            any(one.lagging for one in table.streams())
            and engine.free_blocks == engine.total_blocks
        )
    )
    outcome = finish(lagging)
    client.channel.close()
    assert len(outcome.records()) == outcome.messages[-1].usage.completion_tokens == 60
    assert eventually(lambda: idle(engine))


def test_a_fault_stays_on_its_rank(engine):
    """A step that throws ends the requests of its rank as INTERNAL; both ranks go on."""
    other = engine.start_generate(long_request(), metadata=rank(0))
    next(other)
    outcome = engine.generate(generate_request([models.POISON]), metadata=rank(1))
    assert outcome.code is grpc.StatusCode.OK
    assert outcome.messages[-1].error.code == v1.ERROR_CODE_INTERNAL
    assert next(other).HasField("token")
    other.cancel()
    for number in range(RANKS):
        assert engine.generate(generate_request(), metadata=rank(number)).ends()
    assert eventually(lambda: idle(engine))


def test_probes_reach_every_rank(engine):
    """An inference probe that works says READY."""
    request = v1.HealthRequest(include_inference_probe=True)
    response = engine.call("openengine.v1.Control/Health", request).message
    assert response.state == v1.HEALTH_STATE_READY


def test_a_rank_that_dies():
    """Its requests end as INTERNAL with usage, others run on, and nothing new is taken."""
    with two_ranks() as engine:
        watch = engine.start("grpc.health.v1.Health/Watch", health.HealthCheckRequest())
        assert next(watch).status == health.HealthCheckResponse.SERVING
        lost = engine.start_generate(long_request(), metadata=rank(1))
        next(lost)
        survivor = engine.start_generate(long_request(), metadata=rank(0))
        next(survivor)
        os.kill(engine.app.frontend.engine._ranks[1].pid, signal.SIGKILL)
        outcome = finish(lost)
        assert outcome.code is grpc.StatusCode.OK
        last = outcome.messages[-1]
        assert last.error.code == v1.ERROR_CODE_INTERNAL
        assert last.usage.completion_tokens >= len(outcome.records())
        assert next(watch).status == health.HealthCheckResponse.NOT_SERVING
        watch.cancel()
        assert next(survivor).HasField("token")
        assert engine.generate(generate_request()).code is grpc.StatusCode.UNAVAILABLE
        state = engine.call("openengine.v1.Control/Health", v1.HealthRequest()).message.state
        assert state == v1.HEALTH_STATE_NOT_READY
        survivor.cancel()
        assert eventually(lambda: engine.app.frontend.engine.num_open == 0)


def test_ranks_that_cannot_start():
    """The reason of a rank comes out; one that dies is named with its exit code."""
    with pytest.raises(ConfigError, match="model 'nothing' is not here"):
        start_ranks(1, RankSetup(models.load_nothing, CONFIG, threads=1))
    with pytest.raises(EngineException, match="rank-0 ended with code 7"):
        start_ranks(1, RankSetup(models.load_and_die, CONFIG, threads=1))


def test_stop_before_start():
    """Ranks that never served are stopped as well."""
    (one,) = start_ranks(1, RankSetup(models.load, CONFIG, threads=1))
    one.stop()
    assert not one._process.is_alive()


def test_the_load_of_each_rank(engine):
    """GetLoad gives every rank, a stream the ones that it was asked for; totals are of all."""
    observability = "openengine.v1.OpenEngineObservability"
    assert eventually(lambda: idle(engine))
    watch = v1.WatchLoadRequest(
        min_interval_ms=0, include_per_rank=True, data_parallel_ranks=[1, 1]
    )
    stream = engine.start(f"{observability}/WatchLoad", watch)
    assert list(next(stream).settings.data_parallel_ranks) == [1]
    calls = [engine.start_generate(long_request(), metadata=rank(number)) for number in (0, 1)]
    for call in calls:
        next(call)
    last = next(one for one in stream if one.snapshot.load.running_requests == 2).snapshot.load
    assert [(one.data_parallel_rank, one.running_requests) for one in last.ranks] == [(1, 1)]
    request = v1.GetLoadRequest(include_per_rank=True)
    load = engine.call(f"{observability}/GetLoad", request).message
    assert [one.data_parallel_rank for one in load.ranks] == [0, 1]
    assert [one.running_requests for one in load.ranks] == [1, 1]
    assert load.used_kv_blocks == sum(one.used_kv_blocks for one in load.ranks)
    for call in (stream, *calls):
        call.cancel()
    unknown = v1.WatchLoadRequest(include_per_rank=True, data_parallel_ranks=[2])
    refused = engine.call(f"{observability}/WatchLoad", unknown)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert eventually(lambda: idle(engine))
