from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.cli.main import main


@dataclass(frozen=True, slots=True)
class Done:
    """What a command ended with."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def oe_conform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Runs a command in an empty directory, in this process: starting one costs over a second."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    # `main` turns SIGTERM into Ctrl-C, which is right for a command and wrong for a test run.
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run(*arguments: str) -> Done:
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        out, err = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return Done(stop.value.code, out, err)

    return run
