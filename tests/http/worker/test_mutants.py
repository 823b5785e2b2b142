"""Every faulty worker is killed by the check of the rule that it breaks.

That no other check notices is shown by `oe-conform mutants --workers`: seconds for each.
"""

from __future__ import annotations

import pytest

from conformance.checks import http_checks
from conformance.model.status import Status
from conformance.mutants.worker.matrix import (
    RIGHT,
    WORKER_MUTANTS,
    broken,
    faulty,
    try_worker,
)
from conformance.mutants.worker.mutant import WorkerMutant
from conformance.runner.run import run_http
from conformance.runtimes.contracts import http_registry
from conformance.runtimes.worker import CONTRACT


def test_the_right_worker_passes() -> None:
    """Without a fault every rule is judged and holds."""
    with faulty(RIGHT) as options:
        report = run_http(options)
    ours = [each for each in report.judgements if each.requirement.startswith("OE-WORK-")]
    assert broken(report) == {}
    assert {each.requirement: each.status for each in ours if each.status is not Status.PASS} == {}
    assert report.verdict.exit_code == 0


@pytest.mark.parametrize("mutant", WORKER_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_killed(mutant: WorkerMutant) -> None:
    """Its own check fails, each time it is asked."""
    trial = try_worker(mutant, own_only=True)
    assert trial.killed, f"{trial.own_status}: {trial.own_detail}"


def test_a_fault_breaks_one_rule() -> None:
    """No other check notices a fault that is about one thing."""
    [mutant] = [each for each in WORKER_MUTANTS if each.name == "worker_depth_zero"]
    assert try_worker(mutant).collateral == {}


def test_every_row_has_a_check_and_a_mutant() -> None:
    """A rule that nothing can break, or that nothing checks, is none."""
    rows = [row.id for row in http_registry().requirements() if row.profile == CONTRACT]
    mutated = {mutant.requirement for mutant in WORKER_MUTANTS}
    assert len(rows) == 21
    assert [row for row in rows if row not in http_checks()] == []
    assert [row for row in rows if row not in mutated] == []
    names = [mutant.name for mutant in WORKER_MUTANTS]
    assert len(set(names)) == len(names)
