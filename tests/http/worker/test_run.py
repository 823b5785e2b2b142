"""`oe-conform run --profile workers/systemone`: the command line and the target's file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.errors import ConfigError
from conformance.runner.settings import load_settings
from conformance.runtimes.worker import WorkerTerms, read_terms
from tests.http.worker.servers import SETTINGS, STAGE, on_uvicorn, worker_on

ROOT = Path(__file__).parents[3]
TERMS = f"""
[worker]
body_limit = {SETTINGS.body_limit}
budget_seconds = {SETTINGS.budget_seconds}
budget_header = "{SETTINGS.budget_header}"
"""


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance", "run", "--profile", "workers/systemone"]
    return subprocess.run(
        [*command, *words],
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_black_box_is_judged_by_what_it_shows(tmp_path):
    """Rules about states that nobody can bring about need a hook; the others hold."""
    (tmp_path / "oe-conform.toml").write_text(TERMS)
    with worker_on(on_uvicorn) as options:
        address = options.target.address
        done = run(
            "--target", address, "--budget", "quick", "--report", "json:r.json", cwd=tmp_path
        )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["target"]["class"] == "http-worker"
    statuses = {row["id"]: row["status"] for row in report["requirements"]}
    shown = {row for row, status in statuses.items() if status == "pass"}
    assert shown == {f"OE-WORK-{n:03}" for n in (3, 4, 8, 11, 14, 15, 16, 19)}
    assert statuses["OE-WORK-005"] == "hook_missing"
    assert "reduced coverage" in done.stdout


def test_one_rule_with_a_stage(tmp_path):
    """The target's file may lie anywhere."""
    (tmp_path / "there.toml").write_text(TERMS + f'stage_path = "{STAGE}"\n')
    with worker_on(on_uvicorn) as options:
        address = options.target.address
        words = ("--config", "there.toml", "--id", "OE-WORK-001")
        done = run("--target", address, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass           OE-WORK-001" in done.stderr


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"work_path": "v1"}, "worker.work_path"),
        ({"budget_seconds": 0}, "worker.budget_seconds"),
        ({"body_limit": 1.5}, "worker.body_limit"),
        ({"body_limit": True}, "worker.body_limit"),
        ({"forwarder": "localhost:80"}, "localhost:80"),
        ({"buget_header": "x"}, "budget_header"),
        ([], "worker is no table"),
    ],
)
def test_terms_that_mean_nothing_are_refused(table, says):
    """Naming the key and what was expected."""
    with pytest.raises(ConfigError, match=says):
        read_terms(table, "oe-conform.toml")


def test_terms_have_defaults(tmp_path):
    """And stand beside hooks."""
    file = tmp_path / "oe-conform.toml"
    file.write_text('[hooks]\nstop = ["true"]\n[worker]\nbudget_seconds = 5\n')
    assert load_settings(file).worker == WorkerTerms(budget_seconds=5)


def test_another_contract_is_unknown(tmp_path):
    """With a near match."""
    done = run("--profile", "workers/systemtwo", "--target", "http://127.0.0.1:1", cwd=tmp_path)
    assert done.returncode == 2
    assert "2 profiles for an HTTP target" in done.stderr
