"""Discovery, diagnostics and standard health."""

import asyncio

import grpc
import pytest

from oe_wire import health, v1
from reference_engine.engine.config import EngineConfig
from reference_engine.server.app import ServeOptions
from reference_engine.server.inference_probe import InferenceProbe
from reference_engine.server.listen import Address
from tests.reference_engine.server.running import (
    LIMIT,
    WINDOW,
    Client,
    GatedModel,
    eventually,
    fake_model,
    finish,
    generate_request,
    long_request,
    serving,
)

CONTROL = "openengine.v1.Control"
DISCOVERY = "openengine.v1.OpenEngineDiscovery"
HEALTH = "grpc.health.v1.Health"
CORE_SERVICES = ["openengine.v1.Inference", CONTROL, DISCOVERY, HEALTH]
ADMIN = "openengine.v1.OpenEngineAdmin"
OBSERVABILITY = "openengine.v1.OpenEngineObservability"
SERVICES = [*CORE_SERVICES, ADMIN, OBSERVABILITY]
Status = health.HealthCheckResponse


def check(engine, service):
    return engine.call(f"{HEALTH}/Check", health.HealthCheckRequest(service=service))


def test_identity(engine):
    """EngineInfo repeats ServerInfo, and the revisions and ids are as they must be."""
    info = engine.call(f"{DISCOVERY}/GetEngineInfo", v1.GetEngineInfoRequest()).message
    server = engine.call(f"{CONTROL}/GetServerInfo", v1.GetServerInfoRequest()).message
    same = v1.ServerInfo.FromString(info.SerializeToString())
    for field, value in server.ListFields():
        assert getattr(same, field.name) == value
    assert info.configuration_epoch >= 1
    assert info.capability_revision >= 1
    assert 1 <= info.minimum_client_revision <= info.schema_revision
    assert len(info.schema_release) == 32
    assert info.instance_id
    assert list(info.supported_models) == ["fake"]
    assert info.capacity.total_kv_blocks == 512
    assert not info.service_endpoints


@pytest.mark.parametrize("service", [CONTROL, DISCOVERY])
def test_model_info(engine, service):
    """Both names answer the same: by name and alias, NOT_FOUND, INVALID_ARGUMENT."""
    by_name, by_alias = (
        engine.call(f"{service}/GetModelInfo", v1.GetModelInfoRequest(model=model)).message
        for model in ("fake", "default")
    )
    assert by_name == by_alias
    assert by_name.max_context_length == WINDOW
    assert by_name.max_output_tokens <= by_name.max_context_length
    unknown = engine.call(f"{service}/GetModelInfo", v1.GetModelInfoRequest(model="nope"))
    assert unknown.code is grpc.StatusCode.NOT_FOUND
    empty = engine.call(f"{service}/GetModelInfo", v1.GetModelInfoRequest())
    assert empty.code is grpc.StatusCode.INVALID_ARGUMENT


def test_capabilities(engine):
    """Engine and model scope agree; what is advertised comes with its submessages."""
    name = f"{DISCOVERY}/GetCapabilities"
    whole = engine.call(name, v1.GetCapabilitiesRequest()).message
    model = engine.call(name, v1.GetCapabilitiesRequest(model="default")).message
    assert (whole.model, model.model) == ("", "fake")
    whole.model = model.model
    assert whole == model
    names = [(one.name, one.major) for one in whole.profiles]
    assert set(names) == {("core", 1), ("scheduling_load", 1), ("admin", 1)}
    assert sorted(whole.profiles[0].services) == sorted(CORE_SERVICES)
    present = {field.name for field, _ in whole.ListFields()}
    assert not present & {"kv", "adapters", "tasks", "encoder"}
    info = engine.call(f"{CONTROL}/GetModelInfo", v1.GetModelInfoRequest(model="fake")).message
    assert whole.generation == info.generation
    unknown = engine.call(name, v1.GetCapabilitiesRequest(model="nope"))
    assert unknown.code is grpc.StatusCode.NOT_FOUND


def test_control_health(engine):
    """READY, the probe only when asked for, NOT_FOUND for a model, a check for a role."""
    name = f"{CONTROL}/Health"
    plain = engine.call(name, v1.HealthRequest()).message
    assert plain.state == v1.HEALTH_STATE_READY
    assert [one.name for one in plain.checks] == ["engine"]
    request = v1.HealthRequest(include_inference_probe=True, model="default")
    probed = engine.call(name, request).message
    assert [(one.name, one.state) for one in probed.checks][1:] == [
        ("inference_probe", v1.HEALTH_STATE_READY)
    ]
    assert engine.call(name, v1.HealthRequest(model="x")).code is grpc.StatusCode.NOT_FOUND
    other = engine.call(name, v1.HealthRequest(role=v1.ENGINE_ROLE_PREFILL)).message
    (role,) = [one for one in other.checks if one.name == "role"]
    assert role.state != v1.HEALTH_STATE_READY
    assert other.state != v1.HEALTH_STATE_READY


def test_health_check(engine):
    """Known names are SERVING, unknown ones NOT_FOUND, and List agrees."""
    for service in ("", *SERVICES):
        assert check(engine, service).message.status == Status.SERVING
    assert check(engine, "openengine.v1.Nope").code is grpc.StatusCode.NOT_FOUND
    listed = engine.call(f"{HEALTH}/List", health.HealthListRequest()).message.statuses
    assert set(listed) == {"", *SERVICES}


def test_health_watch(engine):
    """The status comes at once; an unknown name stays open with SERVICE_UNKNOWN."""
    for service, expected in (("", Status.SERVING), ("nope", Status.SERVICE_UNKNOWN)):
        request = health.HealthCheckRequest(service=service)
        call = engine.start(f"{HEALTH}/Watch", request)
        assert next(call).status == expected
        assert call.is_active()
        call.cancel()


SMALL = EngineConfig(num_blocks=1024, block_size=4, max_running=1, max_waiting=1)


def test_graceful_stop():
    """Watchers see NOT_SERVING, new work is refused, running work finishes, the port closes."""
    model = GatedModel()
    with serving(fake_model(model), SMALL) as engine:
        watch = engine.start(f"{HEALTH}/Watch", health.HealthCheckRequest(service=""))
        assert next(watch).status == Status.SERVING
        running = engine.start_generate(generate_request())
        running.initial_metadata()
        stopping = engine.stop(grace=LIMIT)
        assert next(watch).status == Status.NOT_SERVING
        refused = engine.generate(generate_request())
        assert refused.code is grpc.StatusCode.UNAVAILABLE
        assert check(engine, CONTROL).message.status == Status.SERVING
        model.gate.set()
        outcome = finish(running)
        assert outcome.code is grpc.StatusCode.OK
        assert len(outcome.ends()) == 1
        assert list(watch) == []
        stopping.result(LIMIT)
        assert not engine.app.frontend.engine.alive


def test_stop_after_the_grace_time():
    """Work that takes longer than the grace time ends as CANCELLED, with status OK."""
    with serving(fake_model(), SMALL) as engine:
        running = engine.start_generate(long_request())
        next(running)
        stopping = engine.stop(grace=0)
        outcome = finish(running)
        assert outcome.code is grpc.StatusCode.OK
        assert outcome.ends()[0].reason == v1.FINISH_REASON_CANCELLED
        stopping.result(LIMIT)


def test_overload():
    """Beyond running and waiting requests a new one is RESOURCE_EXHAUSTED and retryable."""
    model = GatedModel()
    with serving(fake_model(model), SMALL) as engine:
        calls = [engine.start_generate(generate_request()) for _ in range(2)]
        for call in calls:
            call.initial_metadata()
        refused = engine.generate(generate_request())
        assert refused.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert refused.trailers == {
            "openengine-error-code": "ERROR_CODE_OVERLOADED",
            "openengine-error-retryable": "true",
        }
        assert check(engine, "").message.status == Status.SERVING
        model.gate.set()
        for call in calls:
            assert finish(call).code is grpc.StatusCode.OK
        assert engine.generate(generate_request()).code is grpc.StatusCode.OK


def test_engine_fault(caplog):
    """A step that throws ends its requests with one EngineError, and the engine goes on."""
    model = GatedModel()
    model.gate.set()
    with serving(fake_model(model), SMALL) as engine:
        running = engine.start_generate(long_request())
        next(running)
        model.fault = RuntimeError("out of order")
        outcome = finish(running)
        model.fault = None
        assert outcome.code is grpc.StatusCode.OK
        last = outcome.messages[-1]
        assert last.error.code == v1.ERROR_CODE_INTERNAL
        assert last.error.message
        assert last.usage.completion_tokens > 0
        assert outcome.ends() == []
        assert engine.generate(generate_request()).code is grpc.StatusCode.OK
        assert engine.free_blocks == engine.total_blocks
    assert "out of order" in caplog.text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_engine_thread_ends(caplog):
    """When the engine thread ends, its requests fail, health says so, and new work is refused."""
    model = GatedModel()
    model.gate.set()
    with serving(fake_model(model), SMALL) as engine:
        watch = engine.start(f"{HEALTH}/Watch", health.HealthCheckRequest(service=""))
        assert next(watch).status == Status.SERVING
        running = engine.start_generate(long_request())
        next(running)
        model.fault = SystemExit()
        outcome = finish(running)
        assert outcome.code is grpc.StatusCode.OK
        assert outcome.messages[-1].error.code == v1.ERROR_CODE_INTERNAL
        assert next(watch).status == Status.NOT_SERVING
        watch.cancel()
        assert engine.generate(generate_request()).code is grpc.StatusCode.UNAVAILABLE
        probe = v1.HealthRequest(include_inference_probe=True)
        state = engine.call(f"{CONTROL}/Health", probe).message.state
        assert state == v1.HEALTH_STATE_NOT_READY
        assert check(engine, CONTROL).message.status == Status.SERVING
    assert "the engine thread ends" in caplog.text


def test_stuck_engine():
    """A probe of an engine that makes no progress says DEGRADED within its limit."""
    model = GatedModel()
    with serving(fake_model(model), SMALL) as engine:
        engine.app.frontend.probe_seconds = 0.05
        probe = InferenceProbe(engine.app.frontend)
        state, _ = asyncio.run_coroutine_threadsafe(probe.run(), engine.loop).result(LIMIT)
        assert state == v1.HEALTH_STATE_DEGRADED
        model.gate.set()
        assert eventually(lambda: engine.app.frontend.engine.num_open == 0)


def test_two_listeners():
    """Control and Discovery answer on their own listener, and discovery says where."""
    address = Address("127.0.0.1", 0)
    with serving(fake_model(), SMALL, ServeOptions(address, control=address)) as engine:
        control = Client(engine.app.control_address)
        try:
            info = control.call(f"{DISCOVERY}/GetEngineInfo", v1.GetEngineInfoRequest()).message
            places = {one.service: f"{one.host}:{one.port}" for one in info.service_endpoints}
            assert places == {
                "openengine.v1.Inference": engine.app.address,
                CONTROL: engine.app.control_address,
                DISCOVERY: engine.app.control_address,
                HEALTH: engine.app.control_address,
                ADMIN: engine.app.control_address,
                OBSERVABILITY: engine.app.control_address,
            }
            assert len(info.service_endpoints) == len(places)
            absent = engine.call(f"{CONTROL}/Health", v1.HealthRequest())
            assert absent.code is grpc.StatusCode.UNIMPLEMENTED
            call = engine.start_generate(request := long_request())
            next(call)
            assert control.abort(request.request_id).message.status == v1.ABORT_STATUS_ABORTED
            finish(call)
        finally:
            control.channel.close()
