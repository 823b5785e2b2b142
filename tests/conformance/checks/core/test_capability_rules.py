"""Checks of one or several Capabilities answers against right and wrong engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from oe_wire import v1
from tests.conformance.checks.core.engine_stub import StubEngine, verdict

ROWS = [f"CAP-{number:03}" for number in (9, 10, 11, 17, 20, 21, 22)]
Change = Callable[[StubEngine], Any]


def _by_scope(change: Callable[[v1.Capabilities, str], object]) -> Change:
    """Capabilities that differ by the model they are asked for."""

    def make(engine: StubEngine) -> None:
        def reply(request: Any, _context: Any) -> v1.Capabilities:
            if request.model:
                engine.resolve(request.model)
            scope = v1.Capabilities()
            scope.CopyFrom(engine.scope)
            change(scope, request.model)
            return scope

        engine.replies["OpenEngineDiscovery/GetCapabilities"] = reply

    return make


def _engine(change: Callable[[v1.Capabilities], object]) -> Change:
    """Only the engine's scope is changed."""
    return _by_scope(lambda scope, model: None if model else change(scope))


def _model(change: Callable[[v1.Capabilities], object]) -> Change:
    """Only the model's scope is changed."""
    return _by_scope(lambda scope, model: change(scope) if model else None)


def _set(path: str, value: object) -> Callable[[v1.Capabilities], None]:
    *steps, name = path.split(".")

    def change(scope: v1.Capabilities) -> None:
        target: object = scope
        for step in steps:
            target = getattr(target, step)
        setattr(target, name, value)

    return change


def _add(name: str, **fields: Any) -> Callable[[v1.Capabilities], object]:
    return lambda scope: scope.profiles.add(name=name, **fields)


def _need(profile: str, major: int = 1, minor: int = 0, *, of: str = "core") -> Change:
    return lambda engine: engine.scope.prerequisites.add(
        profile=of, requires_profile=profile, requires_major=major, requires_minor=minor
    )


@pytest.mark.parametrize("row", ROWS)
def test_right_engine_passes(row: str) -> None:
    """Every check passes on a right engine."""
    assert verdict(row, StubEngine()) == "pass"


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("CAP-010", _model(_set("core.finished_request_retention_ms", 1000))),
        ("CAP-010", _model(lambda scope: scope.core.abort_targets.pop())),
        ("CAP-010", _model(lambda scope: scope.core.ClearField("finished_request_retention_ms"))),
        ("CAP-010", _engine(_set("generation.supports_cache_salt", value=True))),
        ("CAP-010", _engine(_set("core.max_stop_conditions", 8))),
        ("CAP-010", _engine(_add("com.example.fast", major=1))),
        ("CAP-010", _engine(lambda scope: setattr(scope.profiles[0], "minor", 1))),
        ("CAP-011", _model(_set("generation.supports_priority", value=True))),
        ("CAP-017", lambda engine: setattr(engine.info, "configuration_epoch", 2)),
        ("CAP-017", lambda engine: setattr(engine.info, "instance_id", "another")),
        ("CAP-020", _need("sessions")),
        ("CAP-020", _need("core", 2)),
        ("CAP-020", _need("core", 1, 1)),
        ("CAP-021", lambda engine: engine.scope.profiles[0].models.append("ghost")),
        ("CAP-021", lambda engine: engine.scope.profiles[0].services.append("Inference")),
        ("CAP-021", lambda engine: engine.scope.profiles[0].services.append("")),
        ("CAP-022", lambda engine: setattr(engine.scope.core, "max_request_bytes", 0)),
        ("CAP-022", lambda engine: setattr(engine.model, "max_output_tokens", 0)),
        ("CAP-022", _model(_set("core.max_request_id_bytes", 0))),
    ],
)
def test_wrong_engine_fails(row: str, change: Change) -> None:
    """Each breach is found by the check of its row."""
    engine = StubEngine()
    change(engine)
    assert verdict(row, engine) == "fail"


@pytest.mark.parametrize(
    ("row", "change"),
    [
        # Within the fallback, so the model's silence promises as much.
        ("CAP-010", _engine(_set("core.max_request_id_bytes", 128))),
        # A model may do more than the engine as a whole.
        ("CAP-010", _model(_set("generation.supports_cache_salt", value=True))),
        ("CAP-010", _model(_set("core.max_stop_conditions", 8))),
        # A profile for other models promises nothing for this one.
        ("CAP-010", _engine(_add("com.example.fast", major=1, models=["other"]))),
        # Time limits and switches that are off are no promises.
        ("CAP-010", _engine(_set("core.response_stall_timeout_ms", 5000))),
        ("CAP-010", _engine(_set("core.deterministic_seed", value=False))),
        ("CAP-020", _need("sessions", of="tasks")),
        ("CAP-020", _need("core")),
        ("CAP-021", lambda engine: engine.scope.profiles[0].models.append("stub-model")),
        ("CAP-022", lambda engine: setattr(engine.scope.core, "response_stall_timeout_ms", 0)),
        ("CAP-022", lambda engine: setattr(engine.scope.core, "finished_request_retention_ms", 0)),
    ],
)
def test_what_is_allowed_passes(row: str, change: Change) -> None:
    """Variants that the rows allow."""
    engine = StubEngine()
    change(engine)
    assert verdict(row, engine) == "pass"
