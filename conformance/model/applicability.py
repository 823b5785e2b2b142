"""Whether a requirement binds a target, and the reason to report when it does not."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.model.expression import evaluate, explain, failing_names
from conformance.model.facts import Facts
from conformance.model.requirement import Requirement, Subject
from conformance.model.status import SkipReason

CORE = "core"  # binds every engine, advertised or not

# What the first drafts carried in fields of the request: priority and rank, and in the place of
# `extra` a number of another type.
_NOT_ON_SINGLE_SERVICE = ("OE-CORE-META-", "OE-CORE-GEN-029")

_BY_NAMESPACE: dict[str, SkipReason] = {
    "role": SkipReason.ROLE,
    "generates": SkipReason.ROLE,
    "model": SkipReason.MODEL,
    "profiles": SkipReason.PROFILE_NOT_ADVERTISED,
    "legacy": SkipReason.LEGACY,
    "dialect": SkipReason.LEGACY,
}


@dataclass(frozen=True, slots=True)
class Applicability:
    """`reason` and `detail` are set exactly when the requirement does not apply."""

    applies: bool
    reason: SkipReason | None = None
    detail: str = ""


APPLIES = Applicability(applies=True)


def applicability(requirement: Requirement, facts: Facts) -> Applicability:
    """Decide from what the target declares, never from what it does.

    A legacy target is bound by the rows flagged legacy; any other by the rows of core, which is
    mandatory, and of the profiles that it advertises. A rule for reports binds none.
    """
    if requirement.subject is Subject.REPORT:
        return _skip(SkipReason.REPORT_RULE, "binds what a report may claim; no engine breaks it")
    if facts.legacy and not requirement.legacy:
        return _skip(SkipReason.LEGACY, "binds profile-aware engines only")
    if facts.single_service and requirement.id.startswith(_NOT_ON_SINGLE_SERVICE):
        return _skip(SkipReason.LEGACY, "binds engines with Inference and Control only")
    advertised = requirement.profile == CORE or requirement.profile in facts.profiles
    if not facts.legacy and not advertised:
        detail = f"profile {requirement.profile} is not advertised"
        return _skip(SkipReason.PROFILE_NOT_ADVERTISED, detail)
    return condition(requirement, facts)


def condition(requirement: Requirement, facts: Facts) -> Applicability:
    """Decide by the row's own condition alone."""
    if evaluate(requirement.applies, facts):
        return APPLIES
    first = failing_names(requirement.applies, facts)[0].partition(".")[0]
    reason = _BY_NAMESPACE.get(first, SkipReason.CAPABILITY_ABSENT)
    return _skip(reason, explain(requirement.applies, facts))


def _skip(reason: SkipReason, detail: str) -> Applicability:
    return Applicability(applies=False, reason=reason, detail=detail)
