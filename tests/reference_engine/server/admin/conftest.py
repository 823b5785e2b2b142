"""Engines that reject and that hold requests while they are paused."""

from collections.abc import Iterator

import grpc
import pytest

from reference_engine.server.deployment import PausedAdmission
from tests.reference_engine.server.admin.calls import (
    CONFIG,
    SERVING,
    options,
    resume,
    state,
    status,
)
from tests.reference_engine.server.running import (
    Running,
    eventually,
    fake_model,
    serving,
)

OK = grpc.StatusCode.OK


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
