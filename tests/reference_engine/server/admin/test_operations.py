"""What a real server lists of admin, its revision, and operations that fail or overlap."""

import grpc
import pytest

from oe_wire import v1
from oe_wire.services import SERVICES
from reference_engine.server.app import ServeOptions
from reference_engine.server.deployment import PausedAdmission
from reference_engine.server.listen import Address
from tests.reference_engine.server.admin.calls import (
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
    eventually,
    fake_model,
    finish,
    generate_request,
    long_request,
    serving,
)

OK = grpc.StatusCode.OK
INVALID = grpc.StatusCode.INVALID_ARGUMENT
REQUIRED = {"GetAdminState", "PauseGeneration", "ResumeGeneration", "ResetCache"}


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
