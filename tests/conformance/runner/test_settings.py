from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.errors import ConfigError, HarnessError
from conformance.runner.settings import DEFAULT, load_settings
from conformance.wire.hooks import Hooks, command

PYTHON = sys.executable


def test_no_file_means_no_hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is optional, unless it is named."""
    monkeypatch.chdir(tmp_path)
    assert load_settings(None).hooks == Hooks()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(DEFAULT)


def test_hooks_are_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook runs its words as they are, without a shell."""
    monkeypatch.chdir(tmp_path)
    program = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()"
    DEFAULT.write_text(f"[hooks]\nrestart = ['{PYTHON}', '-c', '{program}', 'a $HOME']\n")
    hooks = load_settings(None).hooks
    assert hooks.stop is None
    assert hooks.restart is not None
    hooks.restart()
    assert (tmp_path / "a $HOME").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [((PYTHON, "-c", "raise SystemExit(3)"), "exit code 3"), (("/does/not/exist",), "No such")],
)
def test_a_hook_that_fails_is_the_suites_error(words: tuple[str, ...], said: str) -> None:
    """It is no verdict about the target, and says which command failed."""
    with pytest.raises(HarnessError, match=said):
        command(words, name="stop")()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[hook]\nstop = ['x']", "hook"),
        ("[hooks]\nrestrat = ['x']", "restart"),
        ("[hooks]\nstop = 'systemctl stop engine'", "list of words"),
        ("[hooks]\nstop = []", "list of words"),
        ("[hooks]\nstop = [1]", "list of words"),
        ("hooks = 1", r"\[hooks\]"),
        ("hooks", "TOML"),
    ],
)
def test_a_bad_file_names_the_key(tmp_path: Path, text: str, said: str) -> None:
    """One clear error."""
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_settings(path)
