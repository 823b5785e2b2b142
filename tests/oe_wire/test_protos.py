"""The generated files follow the protos."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATED = ("openengine.binpb", "v1.pyi", "health.pyi")


def protos(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs tools/protos.py to its end."""
    command = [sys.executable, str(ROOT / "tools" / "protos.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A repository with our protos and their generated files."""
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    (tmp_path / "oe_wire").mkdir()
    for name in GENERATED:
        shutil.copy(ROOT / "oe_wire" / name, tmp_path / "oe_wire" / name)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    """Replaces a text that must be there."""
    text = path.read_text()
    if old not in text:
        raise ValueError(f"{path.name} does not contain {old!r}")
    path.write_text(text.replace(old, new))


def test_tree_is_fresh() -> None:
    """What is committed is what the protos give."""
    done = protos("--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_changed_proto_is_stale(copy: Path) -> None:
    """A renamed field is noticed in the set and the stub; writing again cures it."""
    edit(copy / "proto/openengine/v1/error.proto", "bool retryable = 3", "bool transient = 3")
    stale = protos("--check", "--root", str(copy))
    assert stale.returncode == 1
    assert stale.stderr == (
        "protos: stale: oe_wire/openengine.binpb, oe_wire/v1.pyi; run `make protos` and commit\n"
    )
    assert protos("--root", str(copy)).returncode == 0
    assert protos("--check", "--root", str(copy)).returncode == 0


def test_changed_comment_is_fresh(copy: Path) -> None:
    """Comments are not in the generated files."""
    edit(copy / "proto/openengine/v1/error.proto", "syntax =", "// Another remark.\n\nsyntax =")
    assert protos("--check", "--root", str(copy)).returncode == 0


def test_missing_generated_file(copy: Path) -> None:
    """A generated file that is not there is stale."""
    (copy / "oe_wire" / "health.pyi").unlink()
    stale = protos("--check", "--root", str(copy))
    assert (stale.returncode, stale.stderr.split(";")[0]) == (
        1,
        "protos: stale: oe_wire/health.pyi",
    )


def test_broken_proto(copy: Path) -> None:
    """A proto that does not compile gives protoc's words and exit status 2, and writes nothing."""
    before = (copy / "oe_wire" / "openengine.binpb").read_bytes()
    edit(copy / "proto/openengine/v1/error.proto", "bool retryable = 3", "bool retryable = 2")
    done = protos("--root", str(copy))
    assert done.returncode == 2
    assert "error.proto" in done.stderr
    assert "Traceback" not in done.stderr
    assert (copy / "oe_wire" / "openengine.binpb").read_bytes() == before


def test_no_protos(tmp_path: Path) -> None:
    """A root without protos is named."""
    done = protos("--root", str(tmp_path))
    assert (done.returncode, done.stderr) == (
        2,
        f"protos: no .proto file under {tmp_path / 'proto'}\n",
    )
