"""Runs a stored case again: a breach is believed only when it shows itself again."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.checks.base import AnyProbe
from conformance.checks.check import Check
from conformance.checks.violation import NotJudged, Violation
from conformance.laws.law import Finding
from conformance.model.case import Case

# A case may judge nothing now and then (a stream that ended before it could be aborted); such an
# execution is repeated, but not for ever.
TRIES_PER_REPLAY = 3


@dataclass(frozen=True, slots=True)
class Replayed:
    """judged: executions that said anything about the requirement. violations: those of them that
    broke it, in order.
    """

    judged: int
    violations: tuple[Violation, ...]


def replay(check: Check, probe: AnyProbe, case: Case, requirement: str, times: int) -> Replayed:
    """Run the case until `times` executions have judged the requirement.

    The requirement is the check's own, or a law's that one of its calls breaks.
    """
    judged, violations = 0, []
    for _ in range(TRIES_PER_REPLAY * times):
        if judged == times:
            break
        outcome = _run(check, probe, case, requirement)
        if outcome is not None:
            judged += 1
        if isinstance(outcome, Violation):
            violations.append(outcome)
    probe.new_case()
    return Replayed(judged, tuple(violations))


def _run(check: Check, probe: AnyProbe, case: Case, requirement: str) -> Violation | bool | None:
    """One execution: the violation, True for a kept requirement, None when nothing was judged."""
    probe.new_case()
    held: bool | None = True
    try:
        check.body(probe, case)
    except Violation as violation:
        if violation.requirement == requirement:
            return violation
    except NotJudged:
        held = None
    if requirement == check.requirement:
        return held
    return _ruling(probe, requirement)


def _ruling(probe: AnyProbe, requirement: str) -> Violation | bool | None:
    rulings = probe.log.rulings.get(requirement, [])
    for ruling, transcript in rulings:
        if isinstance(ruling, Finding):
            return Violation(requirement, ruling.expected, ruling.actual, transcript, ruling.event)
    return True if any(ruling is True for ruling, _ in rulings) else None
