from __future__ import annotations

import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from conformance.errors import ConfigError
from conformance.model.case import Case
from conformance.model.judgement import Judgement
from conformance.model.registry import default_registry
from conformance.model.status import SkipReason, Status
from conformance.model.verdict import CONFORMANT, NOT_CONFORMANT, Claim
from conformance.runner.baseline import Baseline, Known, Shown, compare, load_baseline, shown
from conformance.runner.baseline_file import ISSUE, REASON, update_baseline
from conformance.runner.report import Report
from conformance.runner.result import Failure
from conformance.runner.run import run
from conformance.runner.selection import Selection
from tests.conformance.fake_engine import Behaviour, FakeEngine
from tests.conformance.runner.build import options

ROW = "OE-CORE-GEN-016"
OTHER = "OE-CORE-GEN-017"
SELECTION = Selection(ids=("OE-CORE-GEN-01*",))
TODAY = date(2026, 7, 1)
KNOWN = Known(ROW, "a reason", "https://example.org/1", expected="OK", actual="INTERNAL after 3")


def failure(requirement: str = ROW, actual: str = "INTERNAL after 3") -> Failure:
    return Failure(requirement, requirement, Case(), "OK", actual, None, None, 3, 3)


def shows(*failures: Failure, judged: tuple[str, ...] = (ROW, OTHER)) -> Shown:
    return Shown(frozenset(judged), {one.requirement: one for one in failures})


def problems(*entries: Known, run: Shown) -> tuple[str, ...]:
    return compare(Baseline(Path("known.toml"), entries), run, TODAY).problems


def judged(engine: FakeEngine, baseline: Baseline | None = None) -> Report:
    return run(options(engine, selection=SELECTION, baseline=baseline))


def learnt(report: Report, path: Path) -> Baseline:
    """The baseline that a run writes."""
    update_baseline(path, None, shown(report.failures, report.judgements))
    return load_baseline(path, default_registry())


def test_a_known_failure_is_as_expected() -> None:
    """The same words; numbers may differ."""
    assert problems(KNOWN, run=shows(failure(actual="INTERNAL after 12"))) == ()


def test_an_unknown_failure_is_red() -> None:
    """One that no entry covers."""
    found = problems(KNOWN, run=shows(failure(), failure(OTHER)))
    assert found == (f"{OTHER}: fails and is not in the baseline",)


def test_another_reason_is_red() -> None:
    """A known failure must not hide a different one of the same requirement."""
    (found,) = problems(KNOWN, run=shows(failure(actual="UNKNOWN after 3")))
    assert found.startswith(f"{ROW}: fails for another reason")


def test_a_stale_entry_is_red() -> None:
    """The requirement holds now."""
    assert problems(KNOWN, run=shows()) == (f"{ROW}: stale, it holds now; remove the entry",)


def test_what_was_not_judged_is_not_stale() -> None:
    """A run over other rows says nothing about the entry."""
    assert problems(KNOWN, run=shows(judged=(OTHER,))) == ()


@pytest.mark.parametrize(("expires", "red"), [(TODAY, True), (date(2026, 7, 2), False)])
def test_an_expired_entry_is_red(expires: date, red: bool) -> None:
    """From the day that it names."""
    found = problems(replace(KNOWN, expires=expires), run=shows(failure()))
    assert found == ((f"{ROW}: the entry expired on {expires}",) if red else ())


def test_a_glob_is_bounded() -> None:
    """It accepts any reason, of at most so many rows, and an entry of its own goes before it."""
    glob = Known("OE-CORE-GEN-*", "a reason", "https://example.org/2", at_most=1)
    assert problems(glob, run=shows(failure(OTHER))) == ()
    (found,) = problems(glob, run=shows(failure(), failure(OTHER)))
    assert "2 requirements fail, the entry allows 1" in found
    assert problems(glob, KNOWN, run=shows(failure(), failure(OTHER))) == ()


def test_warnings_and_skips_are_not_deviations() -> None:
    """Only fail and flaky rows need an entry; a row that was not judged counts for nothing."""
    run = shown(
        [failure(), failure(OTHER)],
        [
            Judgement(ROW, Status.WARN),
            Judgement(OTHER, Status.FLAKY),
            Judgement("OE-CORE-GEN-018", Status.EXCLUDED, SkipReason.OPERATOR),
        ],
    )
    assert (run.judged, set(run.failing)) == ({ROW, OTHER}, {OTHER})


def test_a_run_that_fails_as_expected_is_green_and_claims_nothing(tmp_path: Path) -> None:
    """Exit code 0, the claim stays a failure, and the stored case is what was run."""
    with FakeEngine(Behaviour(breaks=frozenset({"GEN-016"}))) as wrong:
        first = judged(wrong)
        baseline = learnt(first, tmp_path / "known.toml")
        again = judged(wrong, baseline)
    assert (first.verdict.exit_code, again.verdict.exit_code) == (NOT_CONFORMANT, CONFORMANT)
    assert again.verdict.claim is Claim.FAILURE
    assert "1 known deviation" in again.verdict.text
    entry = again.known(ROW)
    assert entry is not None
    assert again.failure(ROW) is not None
    assert again.failure(ROW).case == entry.case  # type: ignore[union-attr]


def test_a_mended_engine_is_red_until_the_entry_goes(tmp_path: Path, engine: FakeEngine) -> None:
    """The update removes the entry."""
    path = tmp_path / "known.toml"
    with FakeEngine(Behaviour(breaks=frozenset({"GEN-016"}))) as wrong:
        baseline = learnt(judged(wrong), path)
    report = judged(engine, baseline)
    assert report.verdict.exit_code == NOT_CONFORMANT
    assert report.verdict.claim is not Claim.FAILURE
    update_baseline(path, baseline, shown(report.failures, report.judgements))
    assert load_baseline(path, default_registry()).entries == ()


def test_an_update_keeps_what_people_wrote(tmp_path: Path) -> None:
    """Reasons, comments, globs and entries of rows that were not judged; new ones are marked."""
    path = tmp_path / "known.toml"
    text = f"""# ours
[[known]]
id = "{ROW}"  # a comment
reason = "we know"
issue = "https://example.org/1"
expected = "OK"
actual = "INTERNAL"

[[known]]
id = "OE-CORE-USE-*"
reason = "usage is new"
issue = "https://example.org/2"
at_most = 2
"""
    path.write_text(text)
    baseline = load_baseline(path, default_registry())
    use = failure("OE-CORE-USE-001")
    run = shows(failure(), failure(OTHER), use, judged=(ROW, OTHER, "OE-CORE-USE-001"))
    update_baseline(path, baseline, run)
    written = path.read_text()
    assert "# ours" in written
    assert "# a comment" in written
    rows = {row["id"]: row for row in tomllib.loads(written)["known"]}
    assert set(rows) == {ROW, OTHER, "OE-CORE-USE-*"}
    assert (rows[ROW]["reason"], rows[ROW]["actual"]) == ("we know", "INTERNAL after 3")
    assert (rows[OTHER]["reason"], rows[OTHER]["issue"]) == (REASON, ISSUE)


GOOD = {
    "id": f'"{ROW}"',
    "reason": '"r"',
    "issue": '"https://example.org/1"',
    "expected": '"OK"',
    "actual": '"INTERNAL"',
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": '"OE-CORE-GEN-999"'}, "OE-CORE-GEN-999"),
        ({"reason": '" "'}, "reason"),
        ({"issue": '"JIRA-1"'}, "issue"),
        ({"expires": '"2026-01-01"'}, "expires"),
        ({"at_most": "3"}, "at_most"),
        ({"id": '"OE-CORE-GEN-*"'}, "at_most"),
        ({"actual": None}, "actual"),
        ({"case": '"{"'}, "case"),
        ({"owner": '"me"'}, "owner"),
    ],
)
def test_a_bad_entry_names_the_key(
    tmp_path: Path, changes: dict[str, str | None], said: str
) -> None:
    """One clear error with the file and what was expected."""
    path = tmp_path / "known.toml"
    row = {key: value for key, value in (GOOD | changes).items() if value is not None}
    path.write_text("[[known]]\n" + "".join(f"{key} = {value}\n" for key, value in row.items()))
    with pytest.raises(ConfigError, match=said) as error:
        load_baseline(path, default_registry())
    assert "known.toml" in str(error.value)
