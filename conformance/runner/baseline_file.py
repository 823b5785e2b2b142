"""Writes a baseline: new failures are added, others kept as people have written them."""

from __future__ import annotations

import json
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from conformance.errors import ConfigError
from conformance.model.case import to_json
from conformance.runner.baseline import Baseline, Shown
from conformance.runner.result import Failure

# What a person has to replace; a link that goes nowhere is easily found.
REASON = "not explained yet"
ISSUE = "https://example.invalid/issue"


def update_baseline(path: Path, baseline: Baseline | None, run: Shown) -> None:
    """Make the file say what the run has shown; without a baseline it is written anew.

    Entries whose requirement holds are removed. Those that were not judged, and every reason,
    issue, date and comment, are kept; so are globs, and what they cover gets no entry of its own.
    Raises ConfigError when the file cannot be read or written.
    """
    document = _document(path) if baseline is not None else tomlkit.document()
    entries = () if baseline is None else baseline.entries
    globs = [entry for entry in entries if entry.at_most is not None]
    failing = {
        requirement: failure
        for requirement, failure in run.failing.items()
        if not any(entry.covers(requirement) for entry in globs)
    }
    kept = tomlkit.aot()
    for row in document.get("known", ()):
        failure = failing.pop(row["id"], None)
        if failure is not None:
            row.update(_evidence(failure))
        if failure is not None or row["id"] not in run.judged:
            kept.append(row)
    for requirement in sorted(failing):
        row = tomlkit.table()
        row.update({"id": requirement, "reason": REASON, "issue": ISSUE})
        row.update(_evidence(failing[requirement]))
        kept.append(row)
    document["known"] = kept
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_text(tomlkit.dumps(document), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot be written ({error})", source=str(path)) from error


def _document(path: Path) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(path.read_text(encoding="utf-8"))
    except (OSError, TOMLKitError) as error:
        raise ConfigError(f"cannot be read ({error})", source=str(path)) from error


def _evidence(failure: Failure) -> dict[str, str]:
    return {
        "check": failure.check,
        "expected": failure.expected,
        "actual": failure.actual,
        "case": json.dumps(to_json(failure.case), sort_keys=True),
    }
