"""Failures on disk: one JSON file each, written at once, from which `replay` runs them again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.errors import ConfigError
from conformance.model.case import Case, from_json, to_json

if TYPE_CHECKING:
    # The options of `run` need DIRECTORY before the checks are imported.
    from conformance.runner.result import Failure

FORMAT = 1
DIRECTORY = Path(".oe-conform") / "failures"


@dataclass(frozen=True, slots=True)
class StoredFailure:
    """What a failure file holds: the broken requirement, the check that shows it and the case."""

    requirement: str
    check: str
    case: Case
    expected: str
    actual: str


def name_of(failure: Failure) -> str:
    """`<requirement>-<8 hex digits of the case>`: the same failure gets the same name."""
    content = json.dumps(to_json(failure.case), sort_keys=True).encode()
    return f"{failure.requirement}-{hashlib.sha256(content).hexdigest()[:8]}"


def save(failure: Failure, directory: Path = DIRECTORY) -> Path:
    """Write the failure's file and return its path. The file holds the request that the suite
    made up, and nothing that the target answered.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name_of(failure)}.json"
    content = {
        "format": FORMAT,
        "requirement": failure.requirement,
        "check": failure.check,
        "expected": failure.expected,
        "actual": failure.actual,
        "case": to_json(failure.case),
    }
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def load(name: str, directory: Path = DIRECTORY) -> StoredFailure:
    """Read a failure by path, by file name, or by requirement id when it has one file.

    Raises ConfigError when there is no such file, more than one, or the file is not a failure.
    """
    path = _find(name, directory)
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ConfigError(
                f"format {content['format']!r}", source=str(path), expected=f"format {FORMAT}"
            )
        return StoredFailure(
            str(content["requirement"]),
            str(content["check"]),
            from_json(content["case"]),
            str(content["expected"]),
            str(content["actual"]),
        )
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", source=str(path)) from error
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ConfigError(
            f"is not a failure file ({error})",
            source=str(path),
            expected="a file that `oe-conform run` wrote",
        ) from error


def _find(name: str, directory: Path) -> Path:
    if Path(name).is_file():
        return Path(name)
    matches = sorted(directory.glob(f"{name}*.json")) if name and "/" not in name else []
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ConfigError(
            f"{name!r} names {len(matches)} failures",
            expected="one of " + ", ".join(path.stem for path in matches),
        )
    raise ConfigError(
        f"no failure {name!r} in {directory}",
        expected="a path, or the name that `oe-conform run` printed",
    )
