"""Health follows administration: each change is told, in order, of the data plane alone."""

from collections.abc import Iterator
from itertools import islice

import grpc
import pytest

from oe_wire import health, v1
from reference_engine.server.deployment import PausedAdmission
from tests.reference_engine.server.admin.calls import (
    ABORT,
    ADMIN,
    CONFIG,
    KEEP,
    NOT_SERVING,
    SERVING,
    TESTING,
    WAIT,
    diagnosis,
    inject,
    options,
    pause,
    reconfigure,
    resume,
    status,
)
from tests.reference_engine.server.running import (
    LIMIT,
    Running,
    fake_model,
    finish,
    generate_request,
    long_request,
    serving,
)

DATA = ("", "openengine.v1.Inference")
OTHERS = (
    "openengine.v1.Control",
    "openengine.v1.OpenEngineDiscovery",
    "openengine.v1.OpenEngineObservability",
    "openengine.v1.OpenEngineAdapters",
    ADMIN,
    TESTING,
    "grpc.health.v1.Health",
)


@pytest.fixture(scope="module", params=list(PausedAdmission))
def engine(request: pytest.FixtureRequest) -> Iterator[Running]:
    with serving(fake_model(), CONFIG, options(request.param)) as running:
        yield running


def watch(engine: Running, service: str) -> Iterator[int]:
    """The statuses of a service, the current one first."""
    call = engine.start(
        "grpc.health.v1.Health/Watch", health.HealthCheckRequest(service=service), timeout=LIMIT
    )
    return (message.status for message in call)


def known(engine: Running) -> dict[str, int]:
    found = engine.call("grpc.health.v1.Health/List", health.HealthListRequest()).message
    return {name: one.status for name, one in found.statuses.items()}


def test_per_service(engine):
    """During a pause the data plane alone is NOT_SERVING; Check and List say the same."""
    before = known(engine)
    assert set(before) >= set(DATA)
    assert set(before.values()) == {SERVING}
    pause(engine)
    during = known(engine)
    assert {name for name, one in during.items() if one == NOT_SERVING} == set(DATA)
    assert all(status(engine, name) == one for name, one in during.items())
    resume(engine)
    assert known(engine) == before
    assert set(before) - set(DATA) <= set(OTHERS)


def test_watchers_see_every_change(engine):
    """Those who read and those who do not: SERVING and NOT_SERVING in turn, none left out."""
    watches = [watch(engine, service) for service in DATA for _ in range(3)]
    quiet = watch(engine, ADMIN)
    early = watches[: len(watches) // 2]
    for one in [*watches, quiet]:
        assert next(one) == SERVING
    for mode in (ABORT, WAIT, KEEP):
        pause(engine, mode)
        pause(engine, mode)
        assert [next(one) for one in early] == [NOT_SERVING] * len(early)
        resume(engine)
        resume(engine)
        assert [next(one) for one in early] == [SERVING] * len(early)
    for one in watches[len(early) :]:
        assert list(islice(one, 6)) == [NOT_SERVING, SERVING] * 3
    inject(engine, "WORKER_FAILS")
    assert pause(engine).code is grpc.StatusCode.INTERNAL
    assert list(islice(watches[0], 2)) == [NOT_SERVING, SERVING]


def test_a_pause_that_did_not_come_about(engine):
    """While WAIT waits it is NOT_SERVING; it is SERVING before the call says that it failed."""
    call = engine.start_generate(long_request())
    next(call)
    seen = watch(engine, "")
    assert next(seen) == SERVING
    assert pause(engine, WAIT, timeout_ms=50).code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert status(engine) == SERVING
    assert list(islice(seen, 2)) == [NOT_SERVING, SERVING]
    call.cancel()


def test_control_agrees(engine):
    """NOT_READY exactly while paused; a probe is not run then, and is answered all the same."""
    for probe in (False, True):
        assert diagnosis(engine, probe=probe).state == v1.HEALTH_STATE_READY
    pause(engine)
    held = engine.app.frontend.engine.num_open
    for probe in (False, True):
        found = diagnosis(engine, probe=probe)
        assert found.state == v1.HEALTH_STATE_NOT_READY
        names = [check.name for check in found.checks]
        assert sorted(names) == ["engine", "inference_probe"][: 1 + probe]
        assert all("paused" in check.message for check in found.checks)
    assert engine.app.frontend.engine.num_open == held
    resume(engine)
    assert diagnosis(engine, probe=True).state == v1.HEALTH_STATE_READY


def test_what_answers_while_paused(engine):
    """Discovery, Observability, Control and Admin do."""
    pause(engine)
    for name, request in (
        ("OpenEngineDiscovery/GetEngineInfo", v1.GetEngineInfoRequest()),
        ("OpenEngineDiscovery/GetCapabilities", v1.GetCapabilitiesRequest()),
        ("OpenEngineDiscovery/GetModelInfo", v1.GetModelInfoRequest(model="fake")),
        ("OpenEngineObservability/GetLoad", v1.GetLoadRequest()),
        ("Control/GetServerInfo", v1.GetServerInfoRequest()),
        ("Control/GetLoad", v1.GetLoadRequest()),
        ("OpenEngineAdmin/GetAdminState", v1.GetAdminStateRequest()),
    ):
        assert engine.call(f"openengine.v1.{name}", request).code is grpc.StatusCode.OK
    resume(engine)


def test_load_and_change_do_not_matter(engine):
    """A busy or reconfigured engine stays SERVING, and nobody is told of anything."""
    seen = watch(engine, "")
    assert next(seen) == SERVING
    calls = [engine.start_generate(long_request()) for _ in range(8)]
    for call in calls:
        call.initial_metadata()
    reconfigure(engine, supports_priority=False)
    reconfigure(engine, supports_priority=True)
    assert status(engine) == SERVING
    for call in calls:
        call.cancel()
    pause(engine)
    assert next(seen) == NOT_SERVING
    resume(engine)


def test_stop_while_paused_or_not():
    """Watchers of every service see NOT_SERVING before their call ends."""
    for paused in (False, True):
        with serving(fake_model(), CONFIG, options()) as engine:
            watches = {service: watch(engine, service) for service in ("", ADMIN, *OTHERS[:3])}
            assert [next(one) for one in watches.values()] == [SERVING] * len(watches)
            if paused:
                pause(engine)
            call = engine.start_generate(generate_request())
            stopping = engine.stop()
            for one in watches.values():
                assert list(one) == [NOT_SERVING]
            finish(call)
            stopping.result(LIMIT)
