"""The real suite against a v0.1.0 engine that does what real servers do: it says so, no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.model.registry import default_registry
from conformance.model.requirement import Level
from conformance.model.status import Status
from conformance.runner.budget import BUDGETS
from conformance.wire.declared import TargetClass
from conformance.wire.dialect import RELEASED
from tests.conformance.legacy.cells import Cell, cells, expected
from tests.conformance.legacy.running import CLAIM, judged, lines
from tests.legacy_engine.behaviour import BEHAVIOURS, CLEAN, deviations

PEERS = ("trtllm", "mocker")
# Rows that some cell speaks of: a cell must leave all others of them alone. That it leaves alone
# every other row is what the whole reports show.
SPOKEN_OF = tuple(sorted({requirement for cell in cells() for requirement in cell.lines}))


def named(cell: Cell) -> str:
    """A test's name."""
    return f"{cell.peer}: {cell.case}"


def test_an_engine_without_deviations() -> None:
    """It is compatible, without a failure or a warning; only hooks are missing."""
    report = judged(CLEAN, BUDGETS["quick"])
    assert lines(report) == {}
    assert report.verdict.exit_code == 0
    assert report.verdict.text.startswith(f"{CLAIM} {RELEASED}")
    assert "core 1.0" not in report.verdict.text
    assert report.declared.target_class is TargetClass.LEGACY
    hooked = {j.requirement for j in report.judgements if j.status is Status.HOOK_MISSING}
    assert all(default_registry().requirement(each).needs for each in hooked)


@pytest.mark.parametrize("peer", PEERS)
def test_the_report_equals_the_table(peer: str) -> None:
    """Every deviation of the server has its lines, and nothing else has one."""
    report = judged(BEHAVIOURS[peer], BUDGETS["quick"])
    assert lines(report) == expected(peer)
    assert report.verdict.exit_code == 1
    assert report.verdict.text.startswith(f"not {CLAIM} {RELEASED}")
    assert "core 1.0" not in report.verdict.text


@pytest.mark.parametrize("cell", [cell for cell in cells() if cell.lines], ids=named)
def test_one_deviation_has_its_own_lines(cell: Cell) -> None:
    """A single deviation of an otherwise right engine gives its lines and no others."""
    assert lines(judged(cell.behaviour, ids=SPOKEN_OF)) == cell.lines


@pytest.mark.parametrize("peer", PEERS)
def test_deviations_without_lines_have_none(peer: str) -> None:
    """All of them together leave every row as it is on a right engine."""
    names = [name for cell in cells(peer) if not cell.lines for name in cell.fields]
    quiet = replace(CLEAN, **{name: getattr(BEHAVIOURS[peer], name) for name in names})
    assert lines(judged(quiet, ids=SPOKEN_OF)) == {}


@pytest.mark.parametrize("peer", PEERS)
def test_the_table_is_whole(peer: str) -> None:
    """Each deviation lies in exactly one cell, and each cell has lines or a reason."""
    fields = [name for cell in cells(peer) for name in cell.fields]
    assert sorted(fields) == sorted(deviations(BEHAVIOURS[peer]))
    assert all(bool(cell.lines) is not bool(cell.why) for cell in cells(peer))
    assert len({cell.case for cell in cells(peer)}) == len(cells(peer))


@pytest.mark.parametrize("requirement", SPOKEN_OF)
def test_lines_are_about_rows_for_such_engines(requirement: str) -> None:
    """Only rows flagged legacy have lines, and a MUST warns only where its row tolerates it."""
    row = default_registry().requirement(requirement)
    assert row.legacy
    statuses = {cell.lines[requirement] for cell in cells() if requirement in cell.lines}
    if row.level is Level.MUST and Status.WARN in statuses:
        assert row.tolerates
