"""Known deviations of a target: a file says which, why and until when, and holds the evidence.

A run against it is green when it shows exactly those: a known failure may not hide another one,
and an entry that is not needed any more has to go. What the target may claim does not change.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from conformance.errors import ConfigError, unknown_name
from conformance.model.case import Case, from_json
from conformance.model.judgement import Judgement
from conformance.model.registry import Registry
from conformance.model.status import Status
from conformance.model.verdict import CONFORMANT, NOT_CONFORMANT, NOT_JUDGED, RunVerdict
from conformance.runner.result import Failure

# A row of these is a deviation; a warning is none.
_BROKEN = frozenset({Status.FAIL, Status.FLAKY})
_HOLDS = frozenset({Status.PASS, Status.WARN})


@dataclass(frozen=True, slots=True)
class Known:
    """One entry. id: a requirement, or a glob over several, of which `at_most` may fail. reason,
    issue: why it is accepted and where it is followed. expires: the first day on which it is not
    accepted any more. check, case, expected, actual: the evidence; the case is run again first,
    and has to show what was seen before. A glob has none.

    Entries of a runtime profile (of_profile) have no case and no `expected`, speak of warnings
    too, and may hold where they are known of one model only. stale: what is said when it holds.
    """

    id: str
    reason: str
    issue: str
    expires: date | None = None
    at_most: int | None = None
    check: str = ""
    case: Case | None = None
    expected: str = ""
    actual: str = ""
    stale: str = "stale, it holds now; remove the entry"
    may_hold: bool = False
    of_profile: bool = False

    def covers(self, requirement: str) -> bool:
        """Whether the entry speaks of this requirement."""
        return fnmatchcase(requirement, self.id)

    def explains(self, failure: Failure) -> bool:
        """Whether the failure is the known one. Numbers may differ: counts and seconds vary."""
        if self.at_most is not None:
            return True
        if self.of_profile:
            return not self.actual or _signature("", failure.actual) == _signature("", self.actual)
        seen = (failure.expected, failure.actual)
        return _signature(*seen) == _signature(self.expected, self.actual)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entries of a file, in its order. name: what messages call it."""

    path: Path
    entries: tuple[Known, ...]
    name: str = "baseline"

    def of(self, requirement: str) -> Known | None:
        """The entry for one requirement: its own before a glob's."""
        covering = [entry for entry in self.entries if entry.covers(requirement)]
        return min(covering, key=lambda entry: entry.at_most is not None, default=None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run held against a baseline. known: requirements that fail as expected, with their entry.
    problems: one line for each thing that makes the run red; empty when it is as expected.
    """

    path: Path
    known: Mapping[str, Known]
    problems: tuple[str, ...]
    name: str = "baseline"


def load_baseline(path: Path, registry: Registry) -> Baseline:
    """Read a baseline. Raises ConfigError naming file, entry, key and what was expected."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"cannot be read ({error})",
            source=str(path),
            expected="a TOML file; --update-baseline writes one",
        ) from error
    _validate(table, str(path))
    entries = tuple(_known(row, str(path)) for row in table.get("known", ()))
    ids = tuple(registry.by_id)
    for number, entry in enumerate(entries):
        if not any(entry.covers(known) for known in ids):
            raise unknown_name("requirement id", entry.id, ids, source=str(path))
        if any(other.id == entry.id for other in entries[:number]):
            raise ConfigError(f"two entries for {entry.id}", source=str(path), expected="one")
    return Baseline(path, entries)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a run showed of the requirements that it judged: all of them, those that failed, and
    those that it warned of.
    """

    judged: frozenset[str]
    failing: Mapping[str, Failure]
    warned: Mapping[str, Failure] = field(default_factory=dict)


def shown(failures: Iterable[Failure], judgements: Iterable[Judgement]) -> Shown:
    """What counts for a baseline: a warning is no failure, and a skipped row says nothing."""
    status = {judgement.requirement: judgement.status for judgement in judgements}
    broken = tuple(failures)
    return Shown(
        frozenset(name for name, one in status.items() if one in _BROKEN | _HOLDS),
        {one.requirement: one for one in broken if status[one.requirement] in _BROKEN},
        {one.requirement: one for one in broken if status[one.requirement] is Status.WARN},
    )


def compare(baseline: Baseline, run: Shown, today: date | None = None) -> Comparison:
    """Hold what a run showed against the baseline. today: the date in UTC when None."""
    day = datetime.now(UTC).date() if today is None else today
    failing = run.failing
    known: dict[str, Known] = {}
    problems: list[str] = []
    for requirement, failure in sorted(failing.items()):
        entry = baseline.of(requirement)
        if entry is None:
            problems.append(f"{requirement}: fails and is not in the {baseline.name}")
        elif entry.explains(failure):
            known[requirement] = entry
        else:
            problems.append(
                f"{requirement}: fails for another reason than the known one: expected "
                f"{failure.expected}; got {failure.actual}; known is {entry.actual}"
            )
    for requirement, failure in sorted(run.warned.items()):
        entry = baseline.of(requirement)
        if entry is not None and entry.of_profile and entry.explains(failure):
            known[requirement] = entry
    for entry in baseline.entries:
        problems += _wrong(entry, known, run, day)
    return Comparison(baseline.path, known, tuple(problems), baseline.name)


def against_baseline(verdict: RunVerdict, comparison: Comparison) -> RunVerdict:
    """The verdict with the exit code that the baseline gives: 0 when the run failed as expected, 1
    when it did not. The claim stays, and so does exit code 2 of a run that could not be judged.
    """
    if verdict.exit_code == NOT_JUDGED:
        return verdict
    text = verdict.text
    if comparison.known:
        count = len(comparison.known)
        text += f"; {count} known deviation{'' if count == 1 else 's'}"
    if comparison.problems:
        return replace(
            verdict, exit_code=NOT_CONFORMANT, text=f"{text}; not as the {comparison.name} says"
        )
    return replace(verdict, exit_code=CONFORMANT, text=text)


def _wrong(entry: Known, known: Mapping[str, Known], run: Shown, today: date) -> list[str]:
    """What is wrong with an entry itself, after the run. One that was not judged says nothing."""
    covered = [requirement for requirement in run.judged if entry.covers(requirement)]
    explained = [requirement for requirement, by in known.items() if by is entry]
    problems = []
    if entry.expires is not None and entry.expires <= today:
        problems.append(f"{entry.id}: the entry expired on {entry.expires.isoformat()}")
    shows = run.failing.keys() | (run.warned.keys() if entry.of_profile else ())
    if covered and not entry.may_hold and shows.isdisjoint(covered):
        problems.append(f"{entry.id}: {entry.stale}")
    if entry.at_most is not None and len(explained) > entry.at_most:
        problems.append(
            f"{entry.id}: {len(explained)} requirements fail, the entry allows {entry.at_most}"
        )
    return problems


def _signature(expected: str, actual: str) -> tuple[str, str]:
    return re.sub(r"\d+(\.\d+)?", "#", expected), re.sub(r"\d+(\.\d+)?", "#", actual)


def _known(row: Mapping[str, Any], source: str) -> Known:
    case = None
    if "case" in row:
        try:
            case = from_json(json.loads(row["case"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"the case cannot be read ({error})",
                source=source,
                where=f"known[{row['id']}].case",
                expected="the JSON that --update-baseline wrote",
            ) from error
    return Known(
        id=row["id"],
        reason=row["reason"],
        issue=row["issue"],
        expires=row.get("expires"),
        at_most=row.get("at_most"),
        check=row.get("check", row["id"]),
        case=case,
        expected=row.get("expected", ""),
        actual=row.get("actual", ""),
    )


@cache
def _validator() -> Draft202012Validator:
    file = resources.files("conformance.runner") / "schema" / "baseline.json"
    return Draft202012Validator(json.loads(file.read_text(encoding="utf-8")))


def _validate(table: Mapping[str, Any], source: str) -> None:
    for row in table.get("known", ()) if isinstance(table.get("known", ()), list) else ():
        expires = row.get("expires") if isinstance(row, Mapping) else None
        if expires is not None and type(expires) is not date:
            raise ConfigError(
                f"{expires!r}",
                source=source,
                where=f"known[{row.get('id', '?')}].expires",
                expected="a date without quotes, such as 2027-01-31",
            )
    errors = sorted(_validator().iter_errors(table), key=lambda error: list(map(str, error.path)))
    if errors:
        error = errors[0]
        where = ".".join(str(part) for part in error.absolute_path) or "top level"
        said = error.schema.get("description", "") if isinstance(error.schema, Mapping) else ""
        raise ConfigError(error.message, source=source, where=where, expected=str(said))
