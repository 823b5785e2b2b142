"""What the options of `oe-engine serve` about administration and tests come to."""

import pytest
from click.testing import CliRunner

from reference_engine.cli.serve import serve
from reference_engine.server import process
from reference_engine.server.app import ServeOptions
from reference_engine.server.deployment import AdminLimits, PausedAdmission


def served(monkeypatch: pytest.MonkeyPatch, *options: str) -> ServeOptions:
    """How the engine would serve with these options."""
    seen = []
    monkeypatch.setattr(process, "run", seen.append)
    outcome = CliRunner().invoke(serve, options, catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    (ours,) = seen
    return process._serve_options(ours)


def test_defaults(monkeypatch):
    """Administration is on and refuses new work while paused; tests are off."""
    found = served(monkeypatch)
    assert found.admin == AdminLimits(PausedAdmission.REJECT)
    assert not found.testing
    assert found.probe_timeout_ms == 10_000


def test_chosen(monkeypatch):
    """Each option says what it says."""
    assert served(monkeypatch, "--no-admin").admin is None
    assert served(monkeypatch, "--paused-admission", "hold").admin == AdminLimits(
        PausedAdmission.HOLD
    )
    assert served(monkeypatch, "--testing").testing
    assert served(monkeypatch, "--probe-timeout-ms", "5").probe_timeout_ms == 5


def test_refused():
    """A probe cannot wait longer than a caller may."""
    outcome = CliRunner().invoke(serve, ["--probe-timeout-ms", "60000"])
    assert outcome.exit_code == 2
    assert "--probe-timeout-ms" in outcome.output
