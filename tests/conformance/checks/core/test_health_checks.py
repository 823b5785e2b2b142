"""Checks of standard health and of Control.Health against a right engine and broken ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from oe_wire import health, v1
from tests.conformance.checks.core.engine_stub import (
    INFERENCE,
    StubEngine,
    declared_by,
    refuse,
    verdict,
)

ROWS = [f"HEALTH-{number}" for number in ("001", "002", "003", "004", "008", "013")]
UNKNOWN = health.HealthCheckResponse.UNKNOWN
SERVICE_UNKNOWN = health.HealthCheckResponse.SERVICE_UNKNOWN


def _response(status: int) -> health.HealthCheckResponse:
    return health.HealthCheckResponse(status=status)


def _check_says(status: int) -> Callable[[StubEngine], None]:
    def change(engine: StubEngine) -> None:
        engine.replies["Health/Check"] = lambda _request, _context: _response(status)

    return change


def _watch_says(*statuses: int) -> Callable[[StubEngine], None]:
    """A watch that sends these and ends."""

    def change(engine: StubEngine) -> None:
        engine.replies["Health/Watch"] = lambda _request, _context: map(_response, statuses)

    return change


def _watch_silent(engine: StubEngine) -> None:
    def silent(_request: Any, _context: Any) -> Iterator[Any]:
        engine.closing.wait(30)
        yield from ()

    engine.replies["Health/Watch"] = silent


def _short_names(engine: StubEngine) -> None:
    engine.names["Inference"] = engine.names[INFERENCE]


def _no_state(engine: StubEngine) -> None:
    engine.state.ClearField("state")


def _no_name(engine: StubEngine) -> None:
    engine.state.checks.add(state=v1.HEALTH_STATE_READY)


def _same_name(engine: StubEngine) -> None:
    engine.state.checks.add(name="scheduler", state=v1.HEALTH_STATE_READY)


@pytest.mark.parametrize("row", ROWS)
def test_right_engine_passes(row: str) -> None:
    """Every health check passes on a right engine."""
    assert verdict(row, StubEngine()) == "pass"


def test_drawn_names_pass() -> None:
    """A right engine passes HEALTH-003 for any drawn name."""
    assert verdict("HEALTH-003", StubEngine(), drawn=12) == "pass"


def test_open_watch_passes() -> None:
    """HEALTH-005 passes on an engine that keeps watches of unknown names open."""
    assert verdict("HEALTH-005", StubEngine(), slow_factor=0.2) == "pass"


def test_not_serving_passes() -> None:
    """NOT_SERVING is as good an answer as SERVING."""
    engine = StubEngine()
    engine.names[""] = health.HealthCheckResponse.NOT_SERVING
    assert verdict("HEALTH-001", engine) == "pass"


def test_health_service_need_not_know_itself() -> None:
    """HEALTH-002 does not ask for grpc.health.v1.Health, even where a profile names it."""
    engine = StubEngine()
    assert "grpc.health.v1.Health" in engine.scope.profiles[0].services
    assert verdict("HEALTH-002", engine) == "pass"


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("HEALTH-001", lambda engine: engine.names.pop("")),
        ("HEALTH-001", _check_says(UNKNOWN)),
        ("HEALTH-002", lambda engine: engine.names.pop("openengine.v1.Control")),
        ("HEALTH-002", lambda engine: engine.scope.profiles[0].services.append("x.y.Tasks")),
        ("HEALTH-003", _check_says(SERVICE_UNKNOWN)),
        ("HEALTH-003", _short_names),
        ("HEALTH-004", _watch_silent),
        ("HEALTH-005", _watch_says(SERVICE_UNKNOWN)),
        ("HEALTH-005", _watch_says()),
        ("HEALTH-005", _watch_says(UNKNOWN)),
        ("HEALTH-008", _check_says(UNKNOWN)),
        ("HEALTH-008", _watch_says(UNKNOWN)),
        ("HEALTH-013", _no_state),
        ("HEALTH-013", _no_name),
        ("HEALTH-013", _same_name),
    ],
)
def test_broken_engine_fails(row: str, change: Callable[[StubEngine], None]) -> None:
    """The check of a row fails on an engine that breaks just that row."""
    engine = StubEngine()
    change(engine)
    assert verdict(row, engine, slow_factor=0.2) == "fail"


def test_watch_skipped_without_check() -> None:
    """HEALTH-004 says nothing about a name that Check does not know."""
    engine = StubEngine()
    engine.names.clear()
    assert verdict("HEALTH-004", engine) == "skip"


def test_control_health_skipped_when_refused() -> None:
    """HEALTH-013 says nothing when Control.Health gives no answer."""
    engine = StubEngine()
    declared = declared_by(engine)
    engine.replies["Control/Health"] = refuse(grpc.StatusCode.UNAVAILABLE)
    assert verdict("HEALTH-013", engine, declared=declared) == "skip"
