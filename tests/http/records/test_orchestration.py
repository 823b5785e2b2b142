from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conformance.cli.main import cli
from conformance.errors import ConfigError
from conformance.mutants.http.fixture import fixture_profile
from conformance.mutants.http.server import ROUTES, serving
from conformance.runner import http_setup as module
from conformance.runner.settings import load_settings
from conformance.runtimes.orchestration import Orchestration, read_orchestration

DIGEST = "sha256:" + "0" * 64
RAY: dict[str, Any] = {
    "kind": "ray-serve",
    "build": "2.49.1",
    "route_prefix": "/llm",
    "configuration_digest": DIGEST,
    "locator": {"application": "chat", "deployment": "engine"},
}
SKYPILOT = RAY | {
    "kind": "skypilot",
    "mode": "cluster",
    "build": "0.10.3",
    "locator": {"cluster_name": "c1"},
}
SKYSERVE = SKYPILOT | {"kind": "skyserve", "mode": "service", "locator": {"service_name": "s1"}}


def _read(table: Any) -> Orchestration:
    found = read_orchestration(table, "oe-conform.toml")
    assert found is not None
    return found


@pytest.mark.parametrize("table", [RAY, SKYPILOT, SKYSERVE], ids=lambda table: table["kind"])
def test_each_kind(table: dict[str, Any]) -> None:
    """A descriptor comes out as it went in, with a fingerprint of its own."""
    shown = _read(table).json
    assert {name: shown[name] for name in table} == table
    others = {_read(each).json["fingerprint"] for each in (RAY, SKYPILOT, SKYSERVE)}
    assert shown["fingerprint"] in others
    assert len(others) == 3


def test_none() -> None:
    """No table, no orchestration."""
    assert read_orchestration(None, "") is None
    assert fixture_profile().behind(None) is fixture_profile()


@pytest.mark.parametrize(
    "table",
    [
        [],
        {},
        RAY | {"kind": "kubernetes"},
        RAY | {"kind": 5},
        RAY | {"mode": "cluster"},
        RAY | {"note": "x"},
        RAY | {"locator": {"application": "a"}},
        RAY | {"locator": {"application": "a", "deployment": "b", "cluster_name": "c"}},
        RAY | {"locator": {"application": "a b", "deployment": "c"}},
        RAY | {"build": "latest"},
        RAY | {"route_prefix": "llm"},
        RAY | {"route_prefix": "/llm/"},
        RAY | {"route_prefix": "/../admin"},
        RAY | {"configuration_digest": "0" * 64},
        {name: value for name, value in SKYPILOT.items() if name != "mode"},
        SKYPILOT | {"locator": {"service_name": "s1"}},
        SKYPILOT | {"mode": "service"},
        SKYSERVE | {"locator": {"cluster_name": "c1"}},
        SKYSERVE | {"locator": {"service_name": "s1", "cluster_name": "c1"}},
    ],
)
def test_refused(table: Any) -> None:
    """Whatever is missing, of another kind or unknown is refused, with its place."""
    with pytest.raises(ConfigError, match="orchestration"):
        read_orchestration(table, "oe-conform.toml")


def test_the_runtime_stays_what_it_is() -> None:
    """An orchestrator adds its prefix to the paths; contracts, claims and digest are the same."""
    profile, moved = fixture_profile(), fixture_profile().behind(_read(RAY))
    assert [route.path for route in moved.routes] == [f"/llm{r.path}" for r in profile.routes]
    assert (moved.digest, moved.id, moved.contracts) == (
        profile.digest,
        profile.id,
        profile.contracts,
    )
    at_root = profile.behind(_read(RAY | {"route_prefix": "/"}))
    assert at_root.routes == profile.routes


FILE = f"""
[orchestration]
kind = "ray-serve"
build = "2.49.1"
route_prefix = "/llm"
configuration_digest = "{DIGEST}"

[orchestration.locator]
application = "chat"
deployment = "engine"
"""


def test_in_the_target_file_and_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the target's file says is in the report, and calls go through the prefix."""
    config, report = tmp_path / "oe-conform.toml", tmp_path / "report.json"
    config.write_text(FILE)
    assert load_settings(config).orchestration == _read(RAY)
    monkeypatch.setattr(module, "runtime_profile", lambda _: fixture_profile())
    routes = {(method, f"/llm{path}"): answer for (method, path), answer in ROUTES.items()}
    with serving(None, routes) as server:
        words = ["run", "--target", server.origin, "--profile", "runtimes/fixture@1", "--scripted"]
        words += ["--id", "OE-HTTP-CHAT-001", "--config", str(config)]
        words += ["--report", f"json:{report}", "--failures", str(tmp_path / "failures")]
        result = CliRunner().invoke(cli, words, standalone_mode=False)
    assert result.exception is None, result.output
    target = json.loads(report.read_text())["target"]
    assert target["runtime"]["orchestration"] == _read(RAY).json
    assert target["runtime"]["digest"] == fixture_profile().digest
    rows = {row["id"]: row for row in json.loads(report.read_text())["requirements"]}
    assert rows["OE-HTTP-CHAT-001"]["status"] == "pass"
