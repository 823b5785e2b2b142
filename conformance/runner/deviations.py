"""Known deviations of a runtime profile, held against a run as the entries of a baseline are.

static state   live evidence   outcome
supported      holds / broken  pass / fail (warn for a SHOULD); a known deviation must fail as
                               described, and is STALE-PROFILE when it holds
conditional                    as supported when the condition is stated, else not applicable
unsupported    holds           STALE-PROFILE: the profile is red until it is corrected
unsupported    broken          not applicable
unknown        either          not applicable; what was observed stands in the detail
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conformance.model.judgement import Judgement
from conformance.model.registry import Registry
from conformance.model.requirement import Requirement
from conformance.model.status import SkipReason, Status
from conformance.runner.baseline import Baseline, Known
from conformance.runner.result import CheckResult
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import State

STALE = "STALE-PROFILE"
_BROKEN = frozenset({Status.FAIL, Status.FLAKY, Status.WARN})


def expected_of(declared: HttpDeclared, registry: Registry, baseline: Baseline | None) -> Baseline:
    """What a run of this target has to show: the operator's entries, then the profile's."""
    runtime = declared.runtime
    own = () if baseline is None else baseline.entries
    path = Path(runtime.source) if baseline is None else baseline.path
    deviations = tuple(
        Known(
            id=each.requirement,
            reason=each.reason,
            issue=each.link,
            check=each.requirement,
            actual=each.actual,
            stale=f"{STALE}: it holds now, and {runtime.id} says that it does not",
            may_hold=each.scripted and not declared.scripted,
            of_profile=True,
        )
        for each in runtime.deviations
    )
    unsupported = tuple(
        Known(
            id=row.id,
            reason=f"{row.capability} is unsupported",
            issue=declared.capability(row.capability).evidence,
            check=row.id,
            stale=f"{STALE}: it holds, and {runtime.id} says that {row.capability} is unsupported",
            of_profile=True,
        )
        for row in registry.requirements()
        if row.profile in runtime.contracts and _state(row, declared) is State.UNSUPPORTED
    )
    return Baseline(path, (*own, *deviations, *unsupported), "runtime profile")


def weighed(row: Requirement, result: CheckResult, declared: HttpDeclared) -> CheckResult:
    """The result as the state of the row's capability lets it count."""
    state, judged = _state(row, declared), result.judgement
    if state is State.UNSUPPORTED and judged.status in _BROKEN:
        detail = f"{row.capability} is unsupported, and was seen not to work: {judged.detail}"
        return _neutral(result, SkipReason.CAPABILITY_ABSENT, detail)
    if state is State.UNKNOWN and judged.status in _BROKEN | {Status.PASS}:
        seen = "it held" if judged.status is Status.PASS else judged.detail
        detail = f"nothing is claimed of {row.capability}; observed only: {seen}"
        return _neutral(result, SkipReason.UNCLAIMED, detail)
    return result


def _neutral(result: CheckResult, reason: SkipReason, detail: str) -> CheckResult:
    judged: Judgement = replace(
        result.judgement, status=Status.NOT_APPLICABLE, reason=reason, detail=detail
    )
    return replace(result, judgement=judged, failure=None)


def _state(row: Requirement, declared: HttpDeclared) -> State:
    if not row.capability:
        return State.SUPPORTED
    return declared.capability(row.capability).state
