from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the repository."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT],
        check=True,
        capture_output=True,
        timeout=120,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_it_holds_the_data(wheel: Path) -> None:
    """Profiles, schemas, descriptors, stubs and the small model are inside the packages."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "conformance/profiles/core-1.0.toml",
        "conformance/profiles/schema/profile.json",
        "conformance/reports/schema/report-1.json",
        "oe_wire/openengine.binpb",
        "oe_wire/v1.pyi",
        "oe_wire/py.typed",
        "reference_engine/models/tiny/model.safetensors",
    } <= names
    assert not [name for name in names if name.startswith(("tests/", "tools/", "proto/"))]


def test_torch_is_asked_for_by_the_extra_only(wheel: Path) -> None:
    """`pip install oe-conform` stays small."""
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith("METADATA")]
    wanted = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist") or []
    heavy = [line for line in wanted if line.startswith(("torch", "numpy", "tokenizers"))]
    assert len(heavy) == 3
    assert all("extra == 'engine'" in line for line in heavy)


def test_it_works_outside_the_repository(wheel: Path, tmp_path: Path) -> None:
    """Unpacked alone, away from the checkout, it finds its data and its engine."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    command = [sys.executable, "-P", "-m", "conformance", "run", "--id", "OE-CORE-GEN-01?"]
    done = subprocess.run(
        [*command, "--budget", "quick", "--report", "json:r.json"],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "PYTHONSAFEPATH": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "model tiny" in done.stderr
    assert (tmp_path / "r.json").is_file()
