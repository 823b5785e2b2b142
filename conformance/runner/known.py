"""Runs the stored case of a known deviation: while it still fails in the same way, it is enough."""

from __future__ import annotations

import time

from conformance.checks.base import AnyProbe
from conformance.checks.check import Check
from conformance.model.judgement import Judgement
from conformance.model.requirement import Requirement
from conformance.model.status import Status
from conformance.runner.baseline import Known
from conformance.runner.budget import Budget
from conformance.runner.replay import replay
from conformance.runner.result import CheckResult, Failure


def known_failure(
    known: Known, check: Check, requirement: Requirement, probe: AnyProbe, budget: Budget
) -> CheckResult | None:
    """The failure that the entry describes, when each replay of its case shows it; else None.

    check: the one that the entry names; probe: of that check. A search could find the same fault
    by another request, or not at all, so the result of a known failure would not be repeatable.
    """
    if known.case is None:
        return None
    started = time.monotonic()
    again = replay(check, probe, known.case, requirement.id, budget.replays)
    if not again.judged or len(again.violations) < again.judged:
        return None
    last = again.violations[-1]
    failure = Failure(
        requirement.id,
        check.requirement,
        known.case,
        last.expected,
        last.actual,
        last.transcript,
        last.event,
        again.judged,
        len(again.violations),
    )
    if not known.explains(failure):
        return None
    judgement = Judgement(
        requirement=requirement.id,
        status=Status.FAIL,
        detail=failure.actual,
        cases_judged=again.judged,
        cases_run=again.judged,
        requests=probe.spending.requests,
        tokens=probe.spending.tokens,
        seconds=time.monotonic() - started,
    )
    return CheckResult(judgement, failure, methods=frozenset(probe.methods))
