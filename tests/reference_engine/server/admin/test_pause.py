"""Pause and resume of a real server in each mode, one client at a time."""

from itertools import islice

import grpc
import pytest

from oe_wire import v1
from tests.reference_engine.server.admin.calls import (
    ABORT,
    KEEP,
    NOT_SERVING,
    PAUSED,
    RUNNING,
    SERVING,
    WAIT,
    open_requests,
    pause,
    resume,
    state,
    status,
    waiting_pause,
)
from tests.reference_engine.server.running import (
    eventually,
    finish,
    generate_request,
    long_request,
)

OK = grpc.StatusCode.OK
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def steady_request(tokens: int) -> v1.GenerateRequest:
    """A request for exactly so many tokens."""
    request = generate_request()
    request.stopping.max_tokens = tokens
    request.stopping.ignore_eos = True
    return request


@pytest.mark.parametrize(
    "fields",
    [
        {"mode": 99},
        {"mode": -1},
        {"mode": WAIT, "timeout_ms": 0},
        {"mode": KEEP, "timeout_ms": 1},
        {"mode": ABORT, "timeout_ms": 1},
        {"mode": v1.PAUSE_MODE_UNSPECIFIED, "timeout_ms": 0},
    ],
    ids=str,
)
def test_bad_pauses(reject, fields):
    """Unlisted modes and wrong timeouts are INVALID_ARGUMENT and leave the engine running."""
    before = state(reject)
    outcome = pause(reject, **fields)
    assert (outcome.code, outcome.details != "") == (INVALID, True)
    assert outcome.trailers["openengine-error-code"] == "ERROR_CODE_INVALID_ARGUMENT"
    assert state(reject) == before


@pytest.mark.parametrize("mode", [v1.PAUSE_MODE_UNSPECIFIED, ABORT, WAIT, KEEP])
def test_pause_and_resume(engine, mode):
    """The answer is the state in force; repeating either call changes nothing."""
    in_force = mode or ABORT
    first = pause(engine, mode).message
    assert (first.scheduler, first.pause_mode) == (PAUSED, in_force)
    assert first.instance_id
    assert status(engine) == NOT_SERVING
    assert pause(engine, mode).message == first == state(engine)
    for other in {ABORT, WAIT, KEEP} - {in_force}:
        refused = pause(engine, other)
        assert refused.code is grpc.StatusCode.FAILED_PRECONDITION
    assert state(engine) == first
    running = resume(engine).message
    assert (running.scheduler, running.pause_mode) == (RUNNING, v1.PAUSE_MODE_UNSPECIFIED)
    assert running.admin_revision > first.admin_revision
    assert status(engine) == SERVING
    assert resume(engine).message == running
    assert engine.generate(generate_request()).code is OK


def test_abort(engine):
    """Running requests end as CANCELLED with their usage; none is in flight when it returns."""
    calls = [engine.start_generate(long_request()) for _ in range(2)]
    for call in calls:
        next(call)
    after = pause(engine, ABORT).message
    assert (after.in_flight_requests, after.held_requests) == (0, 0)
    for call in calls:
        outcome = finish(call)
        assert outcome.code is OK
        (end,) = outcome.ends()
        assert end.reason == v1.FINISH_REASON_CANCELLED
        assert outcome.messages[-1].HasField("usage")


def test_wait(engine):
    """It returns once running requests have ended on their own."""
    call = engine.start_generate(steady_request(200))
    next(call)
    assert pause(engine, WAIT).message.in_flight_requests == 0
    (end,) = finish(call).ends()
    assert end.reason == v1.FINISH_REASON_LENGTH


def test_wait_that_takes_too_long(engine):
    """DEADLINE_EXCEEDED, and the engine runs and serves as if nothing had been asked."""
    call = engine.start_generate(steady_request(500))
    next(call)
    assert pause(engine, WAIT, timeout_ms=1).code is grpc.StatusCode.DEADLINE_EXCEEDED
    found = state(engine)
    assert (found.scheduler, found.pause_mode) == (RUNNING, 0)
    assert status(engine) == SERVING
    (end,) = finish(call).ends()
    assert end.reason == v1.FINISH_REASON_LENGTH


@pytest.mark.parametrize(("temperature", "reset_prefix_cache"), [(0.0, False), (1.0, True)])
def test_keep(reject, temperature, reset_prefix_cache):
    """Tokens over several pauses are those of a run without, each once, in order."""

    def asked() -> v1.GenerateRequest:
        request = generate_request("to be kept", sampling=v1.SamplingParams(num_sequences=2))
        request.sampling.temperature = temperature
        request.sampling.seed = 5
        request.stopping.max_tokens = 200
        request.stopping.ignore_eos = True
        return request

    expected = reject.generate(asked())
    call = reject.start_generate(asked())
    messages = list(islice(call, 1))
    for _ in range(3):
        held = pause(reject, KEEP, reset_prefix_cache=reset_prefix_cache).message
        if held.in_flight_requests:
            assert held.held_requests == 1
        assert resume(reject).message.held_requests == 0
        messages += islice(call, 1)
    outcome = finish(call)
    outcome.messages[:0] = messages
    for index in range(2):
        ids = [record.token_id for record in outcome.records(index)]
        assert ids == [record.token_id for record in expected.records(index)]
        assert outcome.text(index) == expected.text(index)
    assert len(outcome.ends()) == 2
    assert outcome.messages[-1].usage.completion_tokens == 400


def test_nothing_is_produced_while_kept(engine):
    """Once what was under way has come, no token follows until the engine is resumed."""
    call = engine.start_generate(long_request())
    next(call)
    pause(engine, KEEP)
    computed = engine.app.frontend.engine.load.running_tokens
    assert open_requests(engine) == (1, 1)
    assert engine.abort("nobody").code is grpc.StatusCode.NOT_FOUND
    assert engine.app.frontend.engine.load.running_tokens == computed
    resume(engine)
    assert eventually(lambda: engine.app.frontend.engine.load.running_tokens != computed)
    call.cancel()


@pytest.mark.parametrize("how", ["cancelled", "deadline"])
def test_a_caller_of_pause_that_goes_away(hold, how):
    """The engine runs again, and what had been held runs."""
    call = hold.start_generate(long_request())
    next(call)
    if how == "deadline":
        assert pause(hold, WAIT, timeout=0.05).code is grpc.StatusCode.DEADLINE_EXCEEDED
    else:
        with waiting_pause(hold):
            newcomer = hold.start_generate(generate_request())
            newcomer.initial_metadata()
        assert finish(newcomer).code is OK
    assert eventually(lambda: state(hold).scheduler == RUNNING)
    assert status(hold) == SERVING
    call.cancel()
