"""Pause, resume and cache resets of a real server, one client at a time."""

from collections.abc import Iterator
from itertools import islice

import grpc
import pytest

from oe_wire import v1
from oe_wire.services import SERVICES
from reference_engine.server.app import ServeOptions
from reference_engine.server.deployment import PausedAdmission
from reference_engine.server.listen import Address
from tests.reference_engine.server.admin_calls import (
    ABORT,
    ADMIN,
    CONFIG,
    KEEP,
    NOT_SERVING,
    PAUSED,
    PAUSING,
    RUNNING,
    SERVING,
    WAIT,
    cached,
    options,
    pause,
    reset,
    resume,
    state,
    status,
    waiting_pause,
)
from tests.reference_engine.server.running import (
    LIMIT,
    GatedModel,
    Running,
    eventually,
    fake_model,
    finish,
    fresh_id,
    generate_request,
    long_request,
    serving,
)

OK = grpc.StatusCode.OK
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def steady_request(tokens: int) -> v1.GenerateRequest:
    """A request for exactly so many tokens."""
    request = generate_request()
    request.stopping.max_tokens = tokens
    request.stopping.ignore_eos = True
    return request


REQUIRED = {"GetAdminState", "PauseGeneration", "ResumeGeneration", "ResetCache"}


@pytest.fixture(scope="module")
def reject() -> Iterator[Running]:
    with serving(fake_model(), CONFIG, options()) as running:
        yield running


@pytest.fixture(scope="module")
def hold() -> Iterator[Running]:
    with serving(fake_model(), CONFIG, options(PausedAdmission.HOLD)) as running:
        yield running


@pytest.fixture(params=["reject", "hold"])
def engine(request: pytest.FixtureRequest) -> Running:
    return request.getfixturevalue(request.param)


@pytest.fixture(autouse=True)
def _left_running(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test leaves its engines running, idle and serving."""
    yield
    for name in {"reject", "hold"}.intersection(request.fixturenames):
        running = request.getfixturevalue(name)
        assert resume(running).code is OK
        assert eventually(lambda running=running: state(running).in_flight_requests == 0)
        assert status(running) == SERVING
        assert eventually(lambda running=running: running.free_blocks == running.total_blocks)


def test_capabilities(reject, hold):
    """Limits are advertised as they are enforced, and every listed service answers."""
    admissions = []
    for one in (reject, hold):
        found = one.call(
            "openengine.v1.OpenEngineDiscovery/GetCapabilities", v1.GetCapabilitiesRequest()
        ).message
        (profile,) = [profile for profile in found.profiles if profile.name == "admin"]
        assert (profile.major, list(profile.services)) == (1, [ADMIN])
        assert set(found.admin.operations) == {
            v1.ADMIN_OPERATION_PAUSE,
            v1.ADMIN_OPERATION_RESET_CACHE,
        }
        assert set(found.admin.pause_modes) == {ABORT, WAIT, KEEP}
        assert list(found.admin.cache_kinds) == [v1.CACHE_KIND_PREFIX]
        admissions.append(found.admin.paused_admission)
        assert status(one, ADMIN) == SERVING
    assert admissions == [v1.PAUSED_ADMISSION_REJECT, v1.PAUSED_ADMISSION_HOLD]


@pytest.mark.parametrize("method", SERVICES[ADMIN], ids=lambda method: method.path)
def test_operations_that_are_not_listed(reject, method):
    """Their RPCs are UNIMPLEMENTED."""
    outcome = reject.call(method.full_name, method.request())
    required = method.path.rsplit("/")[-1] in REQUIRED
    assert (outcome.code is grpc.StatusCode.UNIMPLEMENTED) != required


def test_without_admin():
    """--no-admin: not advertised, not known to health, UNIMPLEMENTED."""
    without = ServeOptions(Address("127.0.0.1", 0), admin=None)
    with serving(fake_model(), CONFIG, without) as engine:
        found = engine.call(
            "openengine.v1.OpenEngineDiscovery/GetCapabilities", v1.GetCapabilitiesRequest()
        ).message
        assert "admin" not in {profile.name for profile in found.profiles}
        assert not found.HasField("admin")
        assert pause(engine).code is grpc.StatusCode.UNIMPLEMENTED


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
    assert cached_state(engine) == (1, 1)
    assert engine.abort("nobody").code is grpc.StatusCode.NOT_FOUND
    assert engine.app.frontend.engine.load.running_tokens == computed
    resume(engine)
    assert eventually(lambda: engine.app.frontend.engine.load.running_tokens != computed)
    call.cancel()


def cached_state(engine: Running) -> tuple[int, int]:
    found = state(engine)
    return found.in_flight_requests, found.held_requests


def test_reject(reject):
    """New work during a pause is UNAVAILABLE before acceptance, malformed work INVALID_ARGUMENT."""
    pause(reject)
    refused = reject.generate(generate_request())
    assert (refused.code, refused.messages) == (grpc.StatusCode.UNAVAILABLE, [])
    assert refused.trailers == {
        "openengine-error-code": "ERROR_CODE_OVERLOADED",
        "openengine-error-retryable": "true",
    }
    assert reject.generate(v1.GenerateRequest()).code is INVALID
    assert cached_state(reject) == (0, 0)


@pytest.mark.parametrize("mode", [ABORT, WAIT, KEEP])
def test_hold(hold, mode):
    """New work during a pause is accepted, silent, counted as held, and runs after the resume."""
    expected = hold.generate(generate_request("held")).text()
    pause(hold, mode)
    calls = [hold.start_generate(generate_request("held")) for _ in range(2)]
    for call in calls:
        call.initial_metadata()
    assert cached_state(hold) == (2, 2)
    assert hold.app.frontend.engine.load.running_tokens == 0
    assert pause(hold, mode).message.held_requests == 2
    resume(hold)
    for call in calls:
        outcome = finish(call)
        assert (outcome.code, outcome.text()) == (OK, expected)


def test_held_requests_have_limits(hold):
    """Beyond the queue's limit a request is RESOURCE_EXHAUSTED, an id in use ALREADY_EXISTS."""
    pause(hold)
    most = CONFIG.max_running + CONFIG.max_waiting
    calls = [hold.start_generate(generate_request()) for _ in range(most)]
    for call in calls:
        call.initial_metadata()
    assert hold.generate(generate_request()).code is grpc.StatusCode.RESOURCE_EXHAUSTED
    resume(hold)
    assert all(finish(call).code is OK for call in calls)


def test_held_id_is_taken(hold):
    """The id of a held request is active."""
    pause(hold)
    request = generate_request()
    call = hold.start_generate(request)
    call.initial_metadata()
    assert hold.generate(request).code is grpc.StatusCode.ALREADY_EXISTS
    resume(hold)
    assert finish(call).code is OK


@pytest.mark.parametrize("begun", [True, False], ids=["kept", "held"])
def test_abort_of_one_that_does_not_run(hold, begun):
    """Abort of a kept or held request ends it at once as CANCELLED; it does not come back."""
    if not begun:
        pause(hold)
    request = long_request()
    call = hold.start_generate(request)
    call.initial_metadata()
    if begun:
        next(call)
        pause(hold)
    assert hold.abort(request.request_id).message.status == v1.ABORT_STATUS_ABORTED
    outcome = finish(call)
    assert outcome.ends()[0].reason == v1.FINISH_REASON_CANCELLED
    assert cached_state(hold) == (0, 0)
    again = hold.abort(request.request_id).message
    assert again.status == v1.ABORT_STATUS_ALREADY_FINISHED
    assert hold.free_blocks == hold.total_blocks


@pytest.mark.parametrize("begun", [True, False], ids=["kept", "held"])
def test_cancellation_of_one_that_does_not_run(hold, begun):
    """A caller that goes away frees its request, its id and its blocks during the pause."""
    if not begun:
        pause(hold)
    request = long_request()
    call = hold.start_generate(request)
    call.initial_metadata()
    if begun:
        next(call)
        pause(hold)
    call.cancel()
    assert eventually(lambda: cached_state(hold) == (0, 0))
    assert eventually(lambda: hold.free_blocks == hold.total_blocks)


def test_reset_cache(engine):
    """It lists what it reset; idle, paused or with requests running, the next prompt has 0."""
    running = engine.start_generate(long_request())
    next(running)
    for paused in (False, True):
        prompt = fresh_id() * 6
        assert (cached(engine, prompt), cached(engine, prompt) > 0) == (0, True)
        if paused:
            pause(engine)
        outcome = reset(engine, *([v1.CACHE_KIND_PREFIX] * 2 if paused else []))
        assert list(outcome.message.reset) == [v1.CACHE_KIND_PREFIX]
        resume(engine)
        assert cached(engine, prompt) == 0
    next(running)
    running.cancel()


def test_pause_with_reset(engine):
    """reset_prefix_cache empties the cache, also when the engine is paused already."""
    prompt = fresh_id() * 6
    for before in (False, True):
        cached(engine, prompt)
        assert cached(engine, prompt) > 0
        if before:
            pause(engine)
        pause(engine, reset_prefix_cache=True)
        resume(engine)
        assert cached(engine, prompt) == 0


@pytest.mark.parametrize(
    "kind", [0, v1.CACHE_KIND_MULTIMODAL, v1.CACHE_KIND_ENCODER, v1.CACHE_KIND_CONNECTOR, 77]
)
def test_caches_that_are_not_there(reject, kind):
    """An unlisted kind is INVALID_ARGUMENT, beside a listed one too, and nothing is reset."""
    prompt = fresh_id() * 6
    cached(reject, prompt)
    assert reset(reject, v1.CACHE_KIND_PREFIX, kind).code is INVALID
    assert cached(reject, prompt) > 0


def test_while_an_operation_waits(hold):
    """Every other operation is ABORTED, whatever it wants; the state tells; the first goes on."""
    request = long_request()
    call = hold.start_generate(request)
    next(call)
    with waiting_pause(hold) as waiting:
        newcomer = hold.start_generate(generate_request())
        newcomer.initial_metadata()
        found = state(hold)
        assert (found.scheduler, found.pause_mode) == (PAUSING, 0)
        assert (found.in_flight_requests, found.held_requests) == (2, 1)
        assert status(hold) == NOT_SERVING
        for outcome in (pause(hold, KEEP), pause(hold, WAIT), resume(hold), reset(hold)):
            assert outcome.code is grpc.StatusCode.ABORTED
        assert state(hold) == found
        hold.abort(request.request_id)
        after = waiting.result(LIMIT)
    assert (after.scheduler, after.pause_mode, after.held_requests) == (PAUSED, WAIT, 1)
    assert len(finish(call).ends()) == 1
    resume(hold)
    assert finish(newcomer).code is OK


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


def test_the_revision_counts_changes(reject):
    """Equal states have equal revisions; whatever else changes, it grows."""
    first = state(reject)
    assert state(reject) == first
    reject.generate(generate_request())
    assert reject.generate(v1.GenerateRequest()).code is INVALID
    seen = [first, state(reject)]
    call = reject.start_generate(long_request())
    next(call)
    seen.append(state(reject))
    seen += [pause(reject).message, resume(reject).message]
    call.cancel()
    assert eventually(lambda: state(reject).in_flight_requests == 0)
    seen.append(state(reject))
    revisions = [one.admin_revision for one in seen]
    assert revisions == sorted(set(revisions))
    assert [one.in_flight_requests for one in seen] == [0, 0, 1, 1, 1, 0]


def test_stop_while_paused():
    """What a pause keeps from running is cancelled without waiting for the grace time."""
    with serving(fake_model(), CONFIG, options(PausedAdmission.HOLD)) as engine:
        kept = engine.start_generate(long_request())
        next(kept)
        pause(engine)
        held = engine.start_generate(long_request())
        held.initial_metadata()
        stopping = engine.stop(grace=10 * LIMIT)
        for call in (kept, held):
            (end,) = finish(call).ends()
            assert end.reason == v1.FINISH_REASON_CANCELLED
        stopping.result(LIMIT)


def test_admin_of_a_stopping_engine():
    """Operations are UNAVAILABLE while the engine shuts down; the state says DRAINING."""
    model = GatedModel()
    with serving(fake_model(model), CONFIG, options()) as engine:
        call = engine.start_generate(generate_request())
        call.initial_metadata()
        stopping = engine.stop(grace=LIMIT)
        assert eventually(lambda: state(engine).scheduler == v1.SCHEDULER_STATE_DRAINING)
        for outcome in (pause(engine), resume(engine), reset(engine)):
            assert outcome.code is grpc.StatusCode.UNAVAILABLE
        model.gate.set()
        assert finish(call).code is OK
        stopping.result(LIMIT)


def test_a_worker_that_does_not_answer(monkeypatch):
    """The call fails within its limit, and the engine runs as before once it answers again."""
    monkeypatch.setattr("reference_engine.server.administration.OPERATION_SECONDS", 0.1)
    model = GatedModel()
    with serving(fake_model(model), CONFIG, options()) as engine:
        call = engine.start_generate(generate_request())
        call.initial_metadata()
        for outcome in (pause(engine, KEEP), pause(engine, ABORT), reset(engine)):
            assert outcome.code is grpc.StatusCode.INTERNAL
            assert "did not take" in outcome.details
        assert (state(engine).scheduler, status(engine)) == (RUNNING, SERVING)
        model.gate.set()
        assert finish(call).ends()[0].reason == v1.FINISH_REASON_LENGTH


def test_an_operation_that_throws(monkeypatch, caplog):
    """It fails the call and the open requests, whose state nobody knows; the engine goes on."""

    def broken(*_: object) -> None:
        raise RuntimeError("out of order")

    with serving(fake_model(), CONFIG, options()) as engine:
        call = engine.start_generate(long_request())
        next(call)
        with monkeypatch.context() as patch:
            patch.setattr("reference_engine.engine.prefix_cache.PrefixCache.clear", broken)
            failed = reset(engine)
        assert failed.code is grpc.StatusCode.INTERNAL
        assert failed.details.startswith("rank 0: the engine failed")
        assert finish(call).messages[-1].error.code == v1.ERROR_CODE_INTERNAL
        assert reset(engine).code is OK
        assert engine.generate(generate_request()).code is OK
    assert "out of order" in caplog.text
