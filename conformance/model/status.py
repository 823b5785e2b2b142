"""The nine outcomes of a requirement, how bad each is, and why a row was not run."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """Outcome of one requirement on one target."""

    PASS = "pass"  # noqa: S105 - the outcome, not a password
    FAIL = "fail"
    WARN = "warn"  # a SHOULD or MAY row, or a tolerance for legacy engines
    NOT_APPLICABLE = "not_applicable"  # the target does not declare what the row is about
    EXCLUDED = "excluded"  # the operator left it out
    HOOK_MISSING = "hook_missing"  # not observable without a testing hook
    BLOCKED = "blocked"  # a prerequisite failed, or the premise never held
    FLAKY = "flaky"  # the stored request failed k of n times, 0 < k < n
    ERROR = "error"  # the suite or the network, never the target


class SkipReason(StrEnum):
    """Why a row has no pass or fail."""

    PROFILE_NOT_ADVERTISED = "profile_not_advertised"
    CAPABILITY_ABSENT = "capability_absent"
    ROLE = "role"
    MODEL = "model"
    LIMIT_TOO_LARGE = "limit_too_large"
    HOOK_MISSING = "hook_missing"
    LEGACY = "legacy"
    REPORT_RULE = "report_rule"
    CONDITION = "condition"  # the operator has not stated that the condition holds
    UNCLAIMED = "unclaimed"  # the runtime profile knows nothing: observed, and not judged
    EFFECT = "effect"  # the operator has not allowed what the call does to the target
    OPERATOR = "operator"
    VACUOUS = "vacuous"
    PREREQUISITE = "prerequisite"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"


# Mild to bad. Fail and flaky are evidence against the target and therefore beat error,
# which only says that the suite could not look.
SEVERITY: tuple[Status, ...] = (
    Status.NOT_APPLICABLE,
    Status.PASS,
    Status.WARN,
    Status.HOOK_MISSING,
    Status.BLOCKED,
    Status.EXCLUDED,
    Status.ERROR,
    Status.FLAKY,
    Status.FAIL,
)

# The target was asked and its answer was judged.
EXECUTED: frozenset[Status] = frozenset({Status.PASS, Status.FAIL, Status.WARN, Status.FLAKY})


def worst(statuses: Iterable[Status]) -> Status:
    """Most severe status; NOT_APPLICABLE for none at all."""
    return max(statuses, key=SEVERITY.index, default=Status.NOT_APPLICABLE)
