"""Faults and reconfiguration on demand, as callers see them."""

from collections.abc import Iterator

import grpc
import pytest

from oe_wire import health, v1
from reference_engine.server.app import ServeOptions
from reference_engine.server.listen import Address
from tests.reference_engine.server.admin.calls import (
    ABORT,
    CONFIG,
    KEEP,
    PAUSED,
    RUNNING,
    SERVING,
    TESTING,
    clear,
    diagnosis,
    inject,
    options,
    pause,
    reconfigure,
    reset,
    resume,
    state,
    status,
)
from tests.reference_engine.server.running import (
    LIMIT,
    Outcome,
    Running,
    eventually,
    fake_model,
    finish,
    generate_request,
    long_request,
    serving,
)

OK = grpc.StatusCode.OK
INVALID = grpc.StatusCode.INVALID_ARGUMENT
DISCOVERY = "openengine.v1.OpenEngineDiscovery"


@pytest.fixture(scope="module")
def _engine() -> Iterator[Running]:
    with serving(fake_model(), CONFIG, options(probe_timeout_ms=100)) as running:
        yield running


@pytest.fixture
def engine(_engine: Running) -> Iterator[Running]:
    yield _engine
    clear(_engine)
    assert resume(_engine).code is OK
    assert eventually(lambda: state(_engine).in_flight_requests == 0)
    assert _engine.generate(generate_request()).code is OK


def the_error(outcome: Outcome) -> v1.EngineError:
    """The EngineError of a call that must have ended with one, last, and OK."""
    assert outcome.code is OK
    assert outcome.ends() == []
    *before, last = outcome.messages
    assert all(message.WhichOneof("event") != "error" for message in before)
    return last.error


def test_only_on_demand():
    """Without the option it is neither advertised nor served nor known to health."""
    with serving(fake_model(), CONFIG, ServeOptions(Address("127.0.0.1", 0))) as engine:
        found = engine.call(f"{DISCOVERY}/GetCapabilities", v1.GetCapabilitiesRequest()).message
        assert "testing" not in {profile.name for profile in found.profiles}
        assert inject(engine, "REQUEST_FAILS").code is grpc.StatusCode.UNIMPLEMENTED
        assert reconfigure(engine).code is grpc.StatusCode.UNIMPLEMENTED
        request = health.HealthCheckRequest(service=TESTING)
        assert engine.call("grpc.health.v1.Health/Check", request).code is (
            grpc.StatusCode.NOT_FOUND
        )


def test_advertised(engine):
    """With the option the profile is listed, and its service answers health checks."""
    found = engine.call(f"{DISCOVERY}/GetCapabilities", v1.GetCapabilitiesRequest()).message
    (profile,) = [profile for profile in found.profiles if profile.name == "testing"]
    assert (profile.major, list(profile.services)) == (1, [TESTING])
    assert status(engine, TESTING) == SERVING


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("UNSPECIFIED", {}),
        ("STAGE_DIES", {}),
        ("STAGE_ABORT_REFUSED", {}),
        ("KV_TRANSFER_FAILS", {}),
        ("REQUEST_FAILS", {"request_id": ""}),
        ("WORKER_FAILS", {"stage_id": "decode"}),
    ],
)
def test_faults_that_cannot_be(engine, kind, fields):
    """Kinds and places that the engine does not have are INVALID_ARGUMENT."""
    assert inject(engine, kind, **fields).code is INVALID


def test_an_unknown_kind(engine):
    """A number that names no kind is INVALID_ARGUMENT."""
    request = v1.InjectFaultRequest(kind=99)
    assert engine.call(f"{TESTING}/InjectFault", request).code is INVALID


def test_fault_ids(engine):
    """They are unique; clearing twice is as good as once, and disarms everything."""
    kinds = ["REQUEST_FAILS", "WORKER_FAILS", "ABORT_REFUSED", "REQUEST_FAILS", "OUT_OF_BLOCKS"]
    ids = [inject(engine, kind).message.fault_id for kind in kinds]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    clear(engine)
    clear(engine)
    assert inject(engine, "ABORT_REFUSED").message.fault_id not in ids
    clear(engine)
    assert engine.generate(generate_request()).ends()
    assert pause(engine).code is OK


@pytest.mark.parametrize("tokens", [None, 0, 5])
@pytest.mark.parametrize("named", [False, True])
def test_request_fails(engine, tokens, named):
    """One request ends with EngineError INTERNAL behind so many tokens; the next is well."""
    request = long_request()
    fields = {"request_id": request.request_id} if named else {}
    if tokens is not None:
        fields["after_tokens"] = tokens
    inject(engine, "REQUEST_FAILS", **fields)
    if named:
        assert engine.generate(generate_request()).ends()
    outcome = engine.generate(request)
    error = the_error(outcome)
    assert (error.code, error.retryable) == (v1.ERROR_CODE_INTERNAL, False)
    assert error.message
    assert len(outcome.records()) == (tokens or 0)
    last = outcome.messages[-1]
    assert last.HasField("usage") == bool(tokens)
    assert last.usage.completion_tokens == (tokens or 0)
    assert engine.generate(generate_request()).ends()


def test_a_running_request_fails(engine):
    """A fault for a request that runs hits it when it has so many tokens; cleared, it does not."""
    for cleared in (False, True):
        request = generate_request()
        request.stopping.max_tokens = 2000 if not cleared else 200
        request.stopping.ignore_eos = True
        call = engine.start_generate(request)
        first = next(call)
        pause(engine, KEEP)
        tokens = 150
        inject(engine, "REQUEST_FAILS", request_id=request.request_id, after_tokens=tokens)
        if cleared:
            clear(engine)
        resume(engine)
        outcome = finish(call)
        outcome.messages.insert(0, first)
        if cleared:
            assert outcome.ends()[0].reason == v1.FINISH_REASON_LENGTH
        else:
            assert the_error(outcome).code == v1.ERROR_CODE_INTERNAL
            assert len(outcome.records()) >= tokens
            assert outcome.messages[-1].usage.completion_tokens == len(outcome.records())


@pytest.mark.parametrize("operation", ["pause", "abort", "resume", "reset"])
def test_worker_fails(engine, operation):
    """The next operation fails with the worker's words and changes nothing; the one after works."""
    call = engine.start_generate(long_request())
    next(call)
    if operation == "resume":
        pause(engine, KEEP)
    inject(engine, "WORKER_FAILS")
    before = state(engine)

    def operate() -> Outcome:
        if operation == "reset":
            return reset(engine)
        if operation == "resume":
            return resume(engine)
        return pause(engine, ABORT if operation == "abort" else KEEP)

    failed = operate()
    assert failed.code is grpc.StatusCode.INTERNAL
    assert failed.details.startswith("rank 0: ")
    assert failed.trailers["openengine-error-code"] == "ERROR_CODE_INTERNAL"
    after = state(engine)
    expected = PAUSED if operation == "resume" else RUNNING
    assert (after.scheduler, after.pause_mode) == (expected, before.pause_mode)
    assert (after.in_flight_requests, after.held_requests) == (1, before.held_requests)
    assert (status(engine) == SERVING) == (expected == RUNNING)
    assert operate().code is OK
    resume(engine)
    if operation != "abort":
        next(call)
    call.cancel()


def test_engine_wedged(engine):
    """Nothing is produced, the probe gives up, the rest answers; cleared, everything goes on."""
    call = engine.start_generate(long_request())
    next(call)
    inject(engine, "ENGINE_WEDGED")
    found = diagnosis(engine, probe=True)
    assert found.state == v1.HEALTH_STATE_DEGRADED
    (check,) = [check for check in found.checks if check.name == "inference_probe"]
    assert check.state == v1.HEALTH_STATE_DEGRADED
    before = engine.app.frontend.engine.load
    late = engine.start_generate(generate_request())
    late.initial_metadata()
    assert status(engine) == SERVING
    assert state(engine).in_flight_requests == 2
    assert diagnosis(engine).state == v1.HEALTH_STATE_READY
    assert engine.app.frontend.engine.load == before
    clear(engine)
    assert finish(late).code is OK
    assert diagnosis(engine, probe=True).state == v1.HEALTH_STATE_READY
    next(call)
    call.cancel()


def test_engine_wedged_for_a_while(engine):
    """A wedge with a duration ends by itself."""
    inject(engine, "ENGINE_WEDGED", duration_ms=1)
    inject(engine, "ENGINE_WEDGED", duration_ms=0)
    assert engine.generate(generate_request()).code is OK


def test_stop_of_a_wedged_engine():
    """It stops all the same, and its requests end."""
    with serving(fake_model(), CONFIG, options()) as engine:
        call = engine.start_generate(long_request())
        next(call)
        inject(engine, "ENGINE_WEDGED")
        stopping = engine.stop(grace=0)
        assert len(finish(call).ends()) == 1
        stopping.result(LIMIT)


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_abort_refused(engine, everything, named):
    """The next abort of an active request is INTERNAL, and nothing is aborted; the one after is."""
    request = long_request()
    call = engine.start_generate(request)
    next(call)
    inject(engine, "ABORT_REFUSED", **({"request_id": request.request_id} if named else {}))
    assert engine.abort("nobody").code is grpc.StatusCode.NOT_FOUND

    def abort() -> Outcome:
        if not everything:
            return engine.abort(request.request_id)
        target = v1.AbortRequest(all_requests=v1.AllRequests())
        return engine.call("openengine.v1.Control/Abort", target)

    refused = abort()
    assert refused.code is grpc.StatusCode.INTERNAL
    assert refused.trailers["openengine-error-code"] == "ERROR_CODE_INTERNAL"
    next(call)
    assert abort().message.status == v1.ABORT_STATUS_ABORTED
    assert finish(call).ends()[0].reason == v1.FINISH_REASON_CANCELLED


def test_abort_refused_of_another(engine):
    """A fault for one request spares the abort of another."""
    request = long_request()
    call = engine.start_generate(request)
    next(call)
    inject(engine, "ABORT_REFUSED", request_id="somebody else")
    assert engine.abort(request.request_id).message.status == v1.ABORT_STATUS_ABORTED
    finish(call)


def test_out_of_blocks(engine):
    """New requests are RESOURCE_EXHAUSTED and retryable until cleared; running ones run."""
    call = engine.start_generate(long_request())
    next(call)
    inject(engine, "OUT_OF_BLOCKS")
    for _ in range(2):
        refused = engine.generate(generate_request())
        assert (refused.code, refused.messages) == (grpc.StatusCode.RESOURCE_EXHAUSTED, [])
        assert refused.trailers == {
            "openengine-error-code": "ERROR_CODE_OVERLOADED",
            "openengine-error-retryable": "true",
        }
    assert engine.generate(v1.GenerateRequest()).code is INVALID
    next(call)
    clear(engine)
    assert engine.generate(generate_request()).code is OK
    call.cancel()


def declared(engine: Running) -> tuple[v1.GenerationCapabilities, tuple[int, int]]:
    """What holds now, after all places that tell it have been found to agree."""
    whole = engine.call(f"{DISCOVERY}/GetCapabilities", v1.GetCapabilitiesRequest()).message
    model = engine.call(
        f"{DISCOVERY}/GetCapabilities", v1.GetCapabilitiesRequest(model="default")
    ).message
    infos = [
        engine.call(f"{service}/GetModelInfo", v1.GetModelInfoRequest(model="fake")).message
        for service in (DISCOVERY, "openengine.v1.Control")
    ]
    assert all(one.generation == whole.generation for one in (model, *infos))
    engine_info = engine.call(f"{DISCOVERY}/GetEngineInfo", v1.GetEngineInfoRequest()).message
    pairs = {
        (one.configuration_epoch, one.capability_revision) for one in (whole, model, engine_info)
    }
    (pair,) = pairs
    return whole.generation, pair


def test_reconfigure(engine):
    """Each change shows everywhere with a greater pair and is enforced; no change, no new pair."""
    _, first = declared(engine)
    seen = [first]
    for fields in (
        {"supports_priority": False},
        {"max_num_sequences": 2},
        {"supports_priority": True, "max_num_sequences": 8},
    ):
        answer = reconfigure(engine, **fields).message
        generation, pair = declared(engine)
        assert (answer.configuration_epoch, answer.capability_revision) == pair
        for name, value in fields.items():
            assert getattr(generation, name) == value
        seen.append(pair)
        assert reconfigure(engine, **fields).message == answer
        assert reconfigure(engine).message == answer
        most = generation.max_num_sequences
        for count, code in ((most, OK), (most + 1, INVALID)):
            request = generate_request(sampling=v1.SamplingParams(num_sequences=count))
            assert engine.generate(request).code is code
        metadata = [("openengine-priority", "5")]
        assert engine.generate(generate_request(), metadata=metadata).code is OK
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("most", [0, 1025, 2**32 - 1])
def test_bad_reconfiguration(engine, most):
    """An impossible limit is INVALID_ARGUMENT, and nothing of the request is done."""
    before = declared(engine)
    outcome = reconfigure(engine, supports_priority=False, max_num_sequences=most)
    assert outcome.code is INVALID
    assert "max_num_sequences" in outcome.details
    assert declared(engine) == before


def test_reconfigure_spares_what_runs(engine):
    """A request that was legal when it came keeps all of its outputs."""
    request = long_request(sampling=v1.SamplingParams(num_sequences=4))
    request.stopping.max_tokens = 100
    call = engine.start_generate(request)
    first = next(call)
    reconfigure(engine, max_num_sequences=1)
    outcome = finish(call)
    outcome.messages.insert(0, first)
    assert len(outcome.ends()) == 4
    reconfigure(engine, max_num_sequences=8)


def test_a_pause_changes_no_capability(engine):
    """Capabilities are the same before, during and after a pause."""
    before = declared(engine)
    pause(engine)
    assert declared(engine) == before
    resume(engine)
    assert declared(engine) == before
