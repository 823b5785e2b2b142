"""Abort, cancellation, deadlines and lost connections: what ends, and that nothing stays."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from oe_wire import v1
from reference_engine.engine.config import EngineConfig
from reference_engine.server import inference
from reference_engine.server.request_table import MAX_FINISHED, RequestTable
from tests.reference_engine.server.running import (
    LIMIT,
    Client,
    GatedModel,
    eventually,
    fake_model,
    finish,
    fresh_id,
    generate_request,
    long_request,
    serving,
)

ABORTED = v1.ABORT_STATUS_ABORTED
ALREADY_FINISHED = v1.ABORT_STATUS_ALREADY_FINISHED


def idle(engine) -> bool:
    frontend = engine.app.frontend
    return (
        frontend.engine.num_open == 0
        and not frontend.table.streams()
        and engine.free_blocks == engine.total_blocks
    )


def test_abort_without_target(engine):
    """No target, or an empty id, is INVALID_ARGUMENT."""
    for request in (v1.AbortRequest(), v1.AbortRequest(request_id="")):
        outcome = engine.call("openengine.v1.Control/Abort", request)
        assert outcome.code is grpc.StatusCode.INVALID_ARGUMENT


def test_abort_of_an_unknown_id(engine):
    """An id that was never used is NOT_FOUND."""
    outcome = engine.abort(fresh_id())
    assert outcome.code is grpc.StatusCode.NOT_FOUND
    assert outcome.trailers["openengine-error-code"] == "ERROR_CODE_REQUEST_NOT_FOUND"


def test_abort_of_a_session(engine):
    """A target kind that is not advertised is UNIMPLEMENTED."""
    request = v1.AbortRequest(kv_session=v1.KvSessionRef(session_id="s"))
    outcome = engine.call("openengine.v1.Control/Abort", request)
    assert outcome.code is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("sequences", [1, 3])
def test_abort_of_an_active_request(engine, sequences):
    """ABORTED, then one CANCELLED per output, usage of what was sent, and everything freed."""
    request = long_request(sampling=v1.SamplingParams(num_sequences=sequences))
    call = engine.start_generate(request)
    first = next(call)
    assert engine.abort(request.request_id).message.status == ABORTED
    outcome = finish(call)
    outcome.messages.insert(0, first)
    assert outcome.code is grpc.StatusCode.OK
    assert [end.reason for end in outcome.ends()] == [v1.FINISH_REASON_CANCELLED] * sequences
    records = sum(len(outcome.records(index)) for index in range(sequences))
    assert outcome.messages[-1].usage.completion_tokens == records
    assert engine.abort(request.request_id).message.status == ALREADY_FINISHED
    assert eventually(lambda: idle(engine))


def test_abort_of_a_finished_request(engine):
    """ALREADY_FINISHED while it is remembered, and the id can be used again."""
    request = generate_request()
    engine.generate(request)
    assert engine.abort(request.request_id).message.status == ALREADY_FINISHED
    assert engine.generate(request).code is grpc.StatusCode.OK


def test_abort_and_reuse_in_a_loop(engine):
    """An abort never hits a later request with the same id."""
    request = long_request()
    for _ in range(5):
        call = engine.start_generate(request)
        next(call)
        assert engine.abort(request.request_id).message.status == ABORTED
        finish(call)
        again = generate_request()
        again.request_id = request.request_id
        outcome = engine.generate(again)
        assert outcome.ends()[0].reason != v1.FINISH_REASON_CANCELLED


def test_abort_all(engine):
    """Every active request ends; without one the answer is ALREADY_FINISHED."""
    everything = v1.AbortRequest(all_requests=v1.AllRequests())
    calls = [engine.start_generate(long_request()) for _ in range(3)]
    for call in calls:
        next(call)
    status = engine.call("openengine.v1.Control/Abort", everything).message.status
    assert status == ABORTED
    for call in calls:
        assert finish(call).ends()[0].reason == v1.FINISH_REASON_CANCELLED
    assert eventually(lambda: idle(engine))
    status = engine.call("openengine.v1.Control/Abort", everything).message.status
    assert status == ALREADY_FINISHED
    assert engine.generate(generate_request()).ends()[0].reason != v1.FINISH_REASON_CANCELLED


@pytest.mark.parametrize("read_first", [True, False])
def test_cancellation(engine, read_first):
    """A cancelled call frees blocks and id, and leaves another stream alone."""
    survivor, request = long_request(), long_request()
    other = engine.start_generate(survivor)
    next(other)
    call = engine.start_generate(request)
    if read_first:
        next(call)
    else:
        call.initial_metadata()
    call.cancel()
    assert eventually(lambda: engine.app.frontend.table.active(request.request_id) is None)
    assert next(other).HasField("token")
    assert engine.abort(survivor.request_id).message.status == ABORTED
    assert finish(other).code is grpc.StatusCode.OK
    assert eventually(lambda: idle(engine))


def test_deadline(engine):
    """A deadline ends the call and frees everything."""
    calls = [engine.start_generate(long_request(), timeout=0.2) for _ in range(4)]
    assert {finish(call).code for call in calls} == {grpc.StatusCode.DEADLINE_EXCEEDED}
    assert eventually(lambda: idle(engine))


def test_lost_connection(engine):
    """Closing the channel cancels every stream on it."""
    client = Client(engine.app.address)
    calls = [client.start_generate(long_request()) for _ in range(3)]
    for call in calls:
        next(call)
    client.channel.close()
    assert eventually(lambda: idle(engine))


@pytest.mark.parametrize("ended_by", ["cancel", "deadline"])
def test_cancelled_work_stops(ended_by):
    """A cancelled request is not computed to its end; a stuck step does not hold its id."""
    model = GatedModel()
    with serving(fake_model(model), EngineConfig(num_blocks=300)) as engine:
        request = long_request()
        timeout = 0.3 if ended_by == "deadline" else LIMIT
        call = engine.start_generate(request, timeout=timeout)
        call.initial_metadata()
        if ended_by == "cancel":
            call.cancel()
        assert eventually(lambda: engine.app.frontend.table.active(request.request_id) is None)
        model.gate.set()
        assert eventually(lambda: idle(engine))
        # The window is 4096 steps long; the command can be late by a few.
        assert model.calls < 100


def test_storm(engine):
    """Requests that end in every way at once leave nothing behind."""
    choice = random.Random(5)

    def one(_):
        request = long_request() if choice.random() < 0.7 else generate_request()
        call = engine.start_generate(request)
        action = choice.choice(["cancel", "abort", "read, cancel", "read, abort"])
        if action.startswith("read"):
            next(call)
        if action.endswith("cancel"):
            call.cancel()
        else:
            engine.abort(request.request_id)
            engine.abort(request.request_id)
        call.cancel()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(64)))
    assert eventually(lambda: idle(engine))
    assert engine.generate(generate_request()).code is grpc.StatusCode.OK


def test_two_requests_with_one_id_at_once(engine, monkeypatch):
    """Of two calls with one id that are tokenized at the same time, one is accepted."""
    monkeypatch.setattr(inference, "LONG_TEXT", 0)
    tokenizer = engine.app.frontend.tokenizer
    both = threading.Barrier(2, timeout=LIMIT)
    encode = tokenizer.encode

    def encode_together(text, **options):
        both.wait()
        return encode(text, **options)

    monkeypatch.setattr(tokenizer, "encode", encode_together)
    request = long_request()
    calls = [engine.start_generate(request) for _ in range(2)]
    assert eventually(lambda: engine.app.frontend.table.active(request.request_id) is not None)
    assert engine.abort(request.request_id).message.status == ABORTED
    codes = sorted(finish(call).code.name for call in calls)
    assert codes == ["ALREADY_EXISTS", "OK"]


def test_table_forgets():
    """Finished ids are remembered for the retention time and within the bound."""
    now = 100.0
    table = RequestTable(1000, clock=lambda: now)
    stream, newer = object(), object()
    table.add("a", stream)
    table.finish("a", stream)
    assert table.finished_recently("a")
    now = 100.9
    assert table.finished_recently("a")
    now = 101.1
    assert not table.finished_recently("a")
    table.add("a", newer)
    table.finish("a", stream)
    assert table.active("a") is newer
    for number in range(MAX_FINISHED + 10):
        table.add(str(number), stream)
        table.finish(str(number), stream)
    assert not table.finished_recently("9")
    assert table.finished_recently("10")
