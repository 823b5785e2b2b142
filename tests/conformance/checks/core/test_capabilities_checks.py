"""Checks of GetCapabilities against a right engine and engines that break one rule each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from oe_wire import v1
from tests.conformance.checks.core.engine_stub import (
    StubEngine,
    declared_by,
    refuse,
    verdict,
)

ROWS = [f"CAP-{number:03}" for number in (1, 2, 3, 4, 5, 6, 12, 13, 15)]
Change = Callable[[StubEngine], Any]


def _profile(name: str, major: int = 1) -> Change:
    return lambda engine: engine.scope.profiles.add(name=name, major=major)


def _notice(notice: int) -> Change:
    return lambda engine: engine.scope.change_notices.append(notice)


def _load_profile(engine: StubEngine) -> None:
    engine.scope.profiles.add(name="scheduling_load", major=1)
    engine.scope.observability.load.min_interval_floor_ms = 10
    engine.scope.change_notices.append(v1.CAPABILITY_CHANGE_NOTICE_LOAD_STREAM)


def _counts_calls(*, bump: bool) -> Change:
    """Content that changes with each call, with or without a new revision."""

    def change(engine: StubEngine) -> None:
        def reply(_request: Any, _context: Any) -> v1.Capabilities:
            retention = engine.scope.core.finished_request_retention_ms
            engine.scope.core.finished_request_retention_ms = retention + 1
            engine.scope.capability_revision += bump
            return engine.scope

        engine.replies["OpenEngineDiscovery/GetCapabilities"] = reply

    return change


def _turns_lists(engine: StubEngine) -> None:
    def reply(_request: Any, _context: Any) -> v1.Capabilities:
        kinds = list(reversed(engine.scope.core.abort_targets))
        del engine.scope.core.abort_targets[:]
        engine.scope.core.abort_targets.extend(kinds)
        return engine.scope

    engine.replies["OpenEngineDiscovery/GetCapabilities"] = reply


@pytest.mark.parametrize("row", ROWS)
def test_right_engine_passes(row: str) -> None:
    """Every capability check passes on a right engine."""
    assert verdict(row, StubEngine()) == "pass"


@pytest.mark.parametrize("row", ROWS)
def test_refused_call_skips(row: str) -> None:
    """Nothing is judged when GetCapabilities gives no answer."""
    engine = StubEngine()
    declared = declared_by(engine)
    engine.replies["OpenEngineDiscovery/GetCapabilities"] = refuse(grpc.StatusCode.UNAVAILABLE)
    assert verdict(row, engine, declared=declared) == "skip"


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("CAP-001", lambda engine: engine.scope.ClearField("profiles")),
        ("CAP-001", lambda engine: setattr(engine.scope.profiles[0], "major", 0)),
        ("CAP-002", _profile("")),
        ("CAP-002", _profile("Sessions")),
        ("CAP-002", _profile("fast_path")),
        ("CAP-002", _profile("com.Example.fast")),
        ("CAP-002", _profile("com..fast")),
        ("CAP-003", _profile("com.example.fast", 0)),
        ("CAP-004", _profile("core")),
        ("CAP-005", lambda engine: engine.scope.observability.load.SetInParent()),
        ("CAP-005", lambda engine: engine.scope.admin.SetInParent()),
        ("CAP-006", _profile("kv_events")),
        ("CAP-012", lambda engine: engine.scope.ClearField("configuration_epoch")),
        ("CAP-012", lambda engine: engine.scope.ClearField("capability_revision")),
        ("CAP-013", _counts_calls(bump=False)),
        ("CAP-015", lambda engine: engine.scope.ClearField("change_notices")),
        ("CAP-015", _notice(v1.CAPABILITY_CHANGE_NOTICE_LOAD_STREAM)),
        ("CAP-015", _notice(v1.CAPABILITY_CHANGE_NOTICE_RUNTIME_EVENT)),
    ],
)
def test_broken_engine_fails(row: str, change: Change) -> None:
    """The check of a row fails on an engine that breaks just that row."""
    engine = StubEngine()
    declared = declared_by(engine)
    change(engine)
    assert verdict(row, engine, declared=declared) == "fail"


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("CAP-002", _profile("com.example.fast_path")),
        ("CAP-004", _profile("core", 2)),
        ("CAP-005", _load_profile),
        ("CAP-006", _load_profile),
        ("CAP-013", _counts_calls(bump=True)),
        ("CAP-013", _turns_lists),
        ("CAP-015", _load_profile),
    ],
)
def test_legal_variations_pass(row: str, change: Change) -> None:
    """Vendor profiles, second majors, new revisions and other orders are right."""
    engine = StubEngine()
    change(engine)
    assert verdict(row, engine) == "pass"
