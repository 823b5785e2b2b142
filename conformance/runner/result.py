"""What judging one requirement gives: plain data that reports, replay and the plugin read."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.checks.violation import Call
from conformance.model.case import Case
from conformance.model.verdict import Judgement


@dataclass(frozen=True, slots=True)
class Failure:
    """The evidence for a broken requirement.

    check: requirement id of the check that made the call (a law may be broken in any check's
    call). case: the smallest case found. reproduced of replays: how often sending the stored case
    again showed the breach; both 0 when it was not replayed. event: index of the offending
    message in the transcript.
    """

    requirement: str
    check: str
    case: Case
    expected: str
    actual: str
    transcript: Call | None
    event: int | None
    replays: int = 0
    reproduced: int = 0

    @property
    def confirmed(self) -> bool:
        """Whether every replay showed the breach again."""
        return self.replays > 0 and self.reproduced == self.replays


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The judgement of one requirement, its evidence, and breaches of other laws seen meanwhile.

    methods: full names of the RPCs that the check called.
    """

    judgement: Judgement
    failure: Failure | None = None
    bystanders: tuple[Failure, ...] = ()
    methods: frozenset[str] = frozenset()
