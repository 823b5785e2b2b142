"""The result of one requirement on one target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.errors import HarnessError
from conformance.model.status import SkipReason, Status

_NEUTRAL = frozenset(
    {
        SkipReason.PROFILE_NOT_ADVERTISED,
        SkipReason.CAPABILITY_ABSENT,
        SkipReason.ROLE,
        SkipReason.MODEL,
        SkipReason.LIMIT_TOO_LARGE,
        SkipReason.LEGACY,
        SkipReason.REPORT_RULE,
        SkipReason.CONDITION,
        SkipReason.UNCLAIMED,
        SkipReason.EFFECT,
    }
)

# Which reasons a status may carry. A status that is missing here carries none; WARN and ERROR
# may also go without.
REASONS: Mapping[Status, frozenset[SkipReason]] = {
    Status.WARN: frozenset({SkipReason.LEGACY}),
    Status.NOT_APPLICABLE: _NEUTRAL,
    Status.EXCLUDED: frozenset({SkipReason.OPERATOR}),
    Status.HOOK_MISSING: frozenset({SkipReason.HOOK_MISSING}),
    Status.BLOCKED: frozenset({SkipReason.VACUOUS, SkipReason.PREREQUISITE}),
    Status.ERROR: frozenset({SkipReason.TIME_LIMIT, SkipReason.INTERRUPTED}),
}
_REASON_OPTIONAL = frozenset({Status.WARN, Status.ERROR})


@dataclass(frozen=True, slots=True)
class Judgement:
    """Outcome of one requirement, with its cost.

    `cases_judged` of `cases_run` met the rule's premise; `tokens` counts completion tokens;
    `seconds` is wall time. Raises HarnessError for a reason that does not go with the status,
    because a skip without a true reason is a silent pass.
    """

    requirement: str
    status: Status
    reason: SkipReason | None = None
    detail: str = ""
    cases_judged: int = 0
    cases_run: int = 0
    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        allowed = REASONS.get(self.status, frozenset())
        if self.reason is None:
            legal = not allowed or self.status in _REASON_OPTIONAL
        else:
            legal = self.reason in allowed
        if not legal:
            expected = ", ".join(sorted(allowed)) or "no reason"
            raise HarnessError(
                f"{self.requirement}: status {self.status} with reason "
                f"{self.reason or 'none'}; expected {expected}"
            )
