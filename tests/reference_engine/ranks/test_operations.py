"""Administration and faults over two rank processes: all of them, or none."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest

from oe_wire import v1
from reference_engine.ranks.start import start_ranks
from reference_engine.ranks.worker import RankSetup
from reference_engine.server.deployment import PausedAdmission
from tests.reference_engine.ranks import models
from tests.reference_engine.server.admin.calls import (
    ABORT,
    CONFIG,
    KEEP,
    PAUSED,
    RUNNING,
    SERVING,
    WAIT,
    clear,
    diagnosis,
    inject,
    options,
    pause,
    reset,
    resume,
    state,
    status,
)
from tests.reference_engine.server.running import (
    Running,
    eventually,
    fake_model,
    finish,
    generate_request,
    long_request,
    serving,
)

RANKS = 2


def on(rank: int) -> tuple[tuple[str, str], ...]:
    return (("openengine-target-dp-rank", str(rank)),)


@contextmanager
def two_ranks() -> Iterator[Running]:
    ranks = start_ranks(RANKS, RankSetup(models.load, CONFIG, threads=1))
    try:
        ours = options(PausedAdmission.HOLD, probe_timeout_ms=300)
        with serving(fake_model(), CONFIG, ours, ranks=ranks) as running:
            yield running
    finally:
        for one in ranks:
            one.stop()


@pytest.fixture(scope="module")
def _engine() -> Iterator[Running]:
    with two_ranks() as running:
        yield running


@pytest.fixture
def engine(_engine: Running) -> Iterator[Running]:
    yield _engine
    clear(_engine)
    assert resume(_engine).code is grpc.StatusCode.OK
    assert eventually(lambda: state(_engine).in_flight_requests == 0)
    assert eventually(lambda: _engine.free_blocks == _engine.total_blocks)


def begun(engine: Running, request: v1.GenerateRequest | None = None) -> list:
    """A running request on each rank, with one message seen."""
    calls = [
        engine.start_generate(request or long_request(), metadata=on(rank)) for rank in range(RANKS)
    ]
    for call in calls:
        next(call)
    return calls


def steps(engine: Running) -> list[int]:
    return [load.running_tokens for load in engine.app.frontend.engine.loads]


def test_keep(engine):
    """Every rank stands still and goes on with the tokens of a run without a pause."""
    requests = [generate_request("kept") for _ in range(RANKS)]
    for request in requests:
        request.stopping.max_tokens = 300
        request.stopping.ignore_eos = True
    expected = [
        engine.generate(request, metadata=on(rank)).text() for rank, request in enumerate(requests)
    ]
    calls = [
        engine.start_generate(request, metadata=on(rank)) for rank, request in enumerate(requests)
    ]
    texts = [next(call).token.text for call in calls]
    pause(engine, KEEP)
    before = steps(engine)
    held = [engine.start_generate(generate_request(), metadata=on(rank)) for rank in range(RANKS)]
    for call in held:
        call.initial_metadata()
    assert state(engine).held_requests == state(engine).in_flight_requests
    assert steps(engine) == before
    resume(engine)
    texts = [text + finish(call).text() for text, call in zip(texts, calls, strict=True)]
    assert texts == expected
    assert all(finish(call).ends() for call in held)


@pytest.mark.parametrize("mode", [ABORT, WAIT])
def test_quiesce(engine, mode):
    """Requests of every rank have ended when the call returns."""
    request = generate_request()
    request.stopping.max_tokens = 100
    request.stopping.ignore_eos = True
    calls = []
    for rank in range(RANKS):
        one = v1.GenerateRequest()
        one.CopyFrom(request)
        one.request_id += f"-{rank}"
        calls.append(engine.start_generate(one, metadata=on(rank)))
        calls[-1].initial_metadata()
    assert pause(engine, mode).message.in_flight_requests == 0
    reasons = {finish(call).ends()[0].reason for call in calls}
    assert v1.FINISH_REASON_STOP not in reasons
    if mode == WAIT:
        assert reasons == {v1.FINISH_REASON_LENGTH}


def test_reset(engine):
    """The cache of every rank is emptied."""
    prompt = "a prompt of more than a block of tokens"

    def cached() -> list[int]:
        return [
            engine.generate(generate_request(prompt), metadata=on(rank))
            .messages[-1]
            .usage.cached_prompt_tokens
            for rank in range(RANKS)
        ]

    cached()
    assert cached() == [32, 32]
    assert reset(engine).code is grpc.StatusCode.OK
    assert cached() == [0, 0]


@pytest.mark.parametrize("operation", [pause, resume, reset])
def test_one_worker_fails(engine, operation):
    """The call fails with the words of the rank; the others are put back to where they were."""
    calls = begun(engine)
    if operation is resume:
        pause(engine, KEEP)
    before = steps(engine)
    inject(engine, "WORKER_FAILS")
    failed = operation(engine)
    assert failed.code is grpc.StatusCode.INTERNAL
    assert failed.details.startswith("rank 1: ")
    if operation is resume:
        assert state(engine).scheduler == PAUSED
        # The rank that had begun to run again may have done a step before it was held again.
        held = steps(engine)
        assert held[1] == before[1]
        assert diagnosis(engine).state == v1.HEALTH_STATE_NOT_READY
        resume(engine)
    assert (state(engine).scheduler, status(engine)) == (RUNNING, SERVING)
    for call in calls:
        next(call)
        call.cancel()


def test_wedged(engine):
    """The probe gives up, nothing else hangs; cleared, both ranks go on in order."""
    calls = begun(engine)
    inject(engine, "ENGINE_WEDGED")
    assert diagnosis(engine, probe=True).state == v1.HEALTH_STATE_DEGRADED
    late = [engine.start_generate(generate_request(), metadata=on(rank)) for rank in range(RANKS)]
    for call in late:
        call.initial_metadata()
    assert state(engine).in_flight_requests == 4
    clear(engine)
    assert all(finish(call).ends() for call in late)
    assert diagnosis(engine, probe=True).state == v1.HEALTH_STATE_READY
    inject(engine, "ENGINE_WEDGED", duration_ms=1)
    for call in calls:
        next(call)
        call.cancel()


def test_request_fails(engine):
    """On any rank: EngineError behind so many tokens."""
    for rank in range(RANKS):
        request = long_request()
        inject(engine, "REQUEST_FAILS", request_id=request.request_id, after_tokens=4)
        outcome = engine.generate(request, metadata=on(rank))
        assert outcome.messages[-1].error.code == v1.ERROR_CODE_INTERNAL
        assert len(outcome.records()) == 4
        running = long_request()
        call = engine.start_generate(running, metadata=on(rank))
        next(call)
        inject(engine, "REQUEST_FAILS", request_id=running.request_id)
        assert finish(call).messages[-1].error.code == v1.ERROR_CODE_INTERNAL


def test_a_lost_rank():
    """Operations fail and say which rank has ended; a stop of a wedged engine ends as ever."""
    with two_ranks() as engine:
        os.kill(engine.app.frontend.engine._ranks[1].pid, signal.SIGKILL)
        assert eventually(lambda: not engine.app.frontend.engine.alive)
        for operation in (pause, reset):
            failed = operation(engine)
            assert failed.code is grpc.StatusCode.INTERNAL
            assert failed.details == "rank 1: the engine core has ended"
        assert state(engine).scheduler == RUNNING
        inject(engine, "ENGINE_WEDGED")
