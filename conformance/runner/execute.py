"""Judges one requirement on one target: table, search, replay, and what they add up to."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from conformance.checks.base import AnyProbe
from conformance.checks.check import Check
from conformance.checks.violation import NotJudged, Tolerated, Violation
from conformance.errors import ConformError
from conformance.laws.law import Finding
from conformance.model.case import Case, from_json, to_json
from conformance.model.requirement import Level, Need, Requirement
from conformance.model.status import SkipReason, Status
from conformance.model.verdict import Judgement
from conformance.runner.budget import Budget
from conformance.runner.replay import replay
from conformance.runner.result import CheckResult, Failure
from conformance.runner.search import Found, search, seed_of


@dataclass(slots=True)
class _Attempts:
    """Runs cases of one check and keeps count."""

    check: Check
    probe: AnyProbe
    run: int = 0
    judged: int = 0
    last_skip: str = ""
    too_large: bool = False
    bystanders: dict[str, Failure] = field(default_factory=dict)

    def __call__(self, case: Case) -> None:
        """Run one case. Raises Violation; a case that judges nothing just returns."""
        self.run += 1
        self.probe.new_case()
        try:
            self.check.body(self.probe, case)
        except NotJudged as skipped:
            self.last_skip = str(skipped)
            self.too_large = self.too_large or skipped.too_large
        except Violation:
            self.judged += 1
            raise
        else:
            self.judged += 1
        finally:
            self._collect_bystanders(case)

    def _collect_bystanders(self, case: Case) -> None:
        for requirement, rulings in self.probe.log.rulings.items():
            if requirement == self.check.requirement or requirement in self.bystanders:
                continue
            for ruling, transcript in rulings:
                if isinstance(ruling, Finding):
                    self.bystanders[requirement] = Failure(
                        requirement,
                        self.check.requirement,
                        case,
                        ruling.expected,
                        ruling.actual,
                        transcript,
                        ruling.event,
                    )
                    break


def execute(
    check: Check, requirement: Requirement, probe: AnyProbe, budget: Budget, run_seed: int
) -> CheckResult:
    """Judge `requirement` with its check. Interrupted and KeyboardInterrupt pass through."""
    started = time.monotonic()
    attempts = _Attempts(check, probe)
    failure: Failure | None = None
    try:
        found, failure = _confirmed(_failing(attempts, budget, run_seed), attempts, budget)
        status, reason, detail = _status(requirement, attempts, found, failure)
    except ConformError as error:
        status, reason, detail = Status.ERROR, None, str(error)
    except Exception as error:  # noqa: BLE001 - a fault of a check must not end the run or blame the target
        status, reason, detail = Status.ERROR, None, f"the check itself failed: {error!r}"
    finally:
        probe.new_case()
    judgement = Judgement(
        requirement=requirement.id,
        status=status,
        reason=reason,
        detail=detail,
        cases_judged=attempts.judged,
        cases_run=attempts.run,
        requests=probe.spending.requests,
        tokens=probe.spending.tokens,
        seconds=time.monotonic() - started,
    )
    bystanders = tuple(attempts.bystanders.values())
    return CheckResult(judgement, failure, bystanders, frozenset(probe.methods))


def _failing(attempts: _Attempts, budget: Budget, run_seed: int) -> list[Found]:
    """Failing cases of the table and the search, smallest first; real breaches only if any is.

    The search goes on after the table has failed: its cases shrink, those of the table do not.
    """
    check, probe = attempts.check, attempts.probe
    found = [_failing_in_table(attempts, budget.table)]
    if check.strategy is not None and budget.examples:
        searched = search(
            attempts,
            check.strategy(probe.declared),
            budget=budget,
            seed=seed_of(run_seed, check.requirement),
            spending=probe.spending,
        )
        found.insert(0, searched)
    ordered = sorted((each for each in found if each is not None), key=_size)
    return [each for each in ordered if _tolerated(each) == _tolerated(ordered[0])]


def _confirmed(
    candidates: Iterable[Found], attempts: _Attempts, budget: Budget
) -> tuple[Found, Failure] | tuple[None, None]:
    """The first case that every replay shows again, else the first one: a small case that fails
    now and then must not hide a larger one that always does.
    """
    first: tuple[Found, Failure] | tuple[None, None] = (None, None)
    for found in candidates:
        failure = _replayed(found, attempts, budget)
        if failure.confirmed:
            return found, failure
        first = first if first[0] is not None else (found, failure)
    return first


def _tolerated(found: Found) -> bool:
    return isinstance(found.violation, Tolerated)


def _failing_in_table(attempts: _Attempts, most: int | None) -> Found | None:
    check = attempts.check
    tolerated: Found | None = None
    cases = check.table(attempts.probe.declared) if check.table is not None else ()
    for case in islice(cases, most):
        try:
            attempts(case)
        except Tolerated as violation:
            tolerated = tolerated or Found(case, violation)
        except Violation as violation:
            return Found(case, violation)
    return tolerated


def _size(found: Found) -> tuple[bool, int]:
    request = found.case.request
    return _tolerated(found), 0 if request is None else request.ByteSize()


def _replayed(found: Found, attempts: _Attempts, budget: Budget) -> Failure:
    check, violation = attempts.check, found.violation
    stored = from_json(to_json(found.case))
    again = replay(check, attempts.probe, stored, check.requirement, budget.replays)
    return Failure(
        check.requirement,
        check.requirement,
        stored,
        violation.expected,
        violation.actual,
        violation.transcript,
        violation.event,
        again.judged,
        len(again.violations),
    )


def _status(
    requirement: Requirement, attempts: _Attempts, found: Found | None, failure: Failure | None
) -> tuple[Status, SkipReason | None, str]:
    if found is not None and failure is not None:
        tolerated = _tolerated(found)
        return failure_status(requirement, failure, tolerated=tolerated), None, failure.actual
    if attempts.judged:
        return Status.PASS, None, ""
    detail = attempts.last_skip or "no case was run"
    if attempts.too_large:
        return Status.NOT_APPLICABLE, SkipReason.LIMIT_TOO_LARGE, detail
    if Need.HOOK in requirement.needs:
        return Status.HOOK_MISSING, SkipReason.HOOK_MISSING, detail
    return Status.BLOCKED, SkipReason.VACUOUS, detail


def failure_status(requirement: Requirement, failure: Failure, *, tolerated: bool) -> Status:
    """The status that a replayed breach gives: only a MUST that breaks every time fails."""
    if tolerated or requirement.level is not Level.MUST:
        return Status.WARN
    return Status.FAIL if failure.confirmed else Status.FLAKY
