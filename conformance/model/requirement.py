"""One numbered rule of a profile."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from conformance.model.expression import ALWAYS, Expression


class Level(StrEnum):
    """Keyword of the rule; only a MUST can fail a target."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Need(StrEnum):
    """What a check of the rule depends on besides the target's declarations."""

    HOOK = "hook"  # the testing profile or a hook command
    DETERMINISTIC = "deterministic"  # greedy output repeats on an idle engine
    EXCLUSIVE = "exclusive"  # no other request may run meanwhile
    RESTART = "restart"  # stops the target and starts it again: judged last


class Subject(StrEnum):
    """Whom the rule binds."""

    ENGINE = "engine"
    REPORT = "report"  # what may be claimed of an engine: no engine can break it


# Module that keeps the rules which bind reports, as tables of requirements name it.
VERDICT = "model.profile_verdict"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A rule as the profile file states it.

    `sources` are letters: P profile proposal, O orchestration contract, U upstream API text,
    H earlier upstream draft, G gRPC health checking, W W3C trace context, D decided here.
    `legacy` rows also bind engines that serve only Inference and Control; `tolerates` says
    which deviation such an engine is warned for instead of failed. A rule whose subject is the
    report has no check: the verdict model keeps it, and its own tests prove that. `capability`
    is the one of an HTTP runtime that a row of an HTTP contract is about.
    """

    id: str
    profile: str
    level: Level
    text: str
    sources: tuple[str, ...]
    applies: Expression = ALWAYS
    needs: frozenset[Need] = frozenset()
    legacy: bool = False
    tolerates: str = ""
    subject: Subject = Subject.ENGINE
    capability: str = ""

    @property
    def group(self) -> str:
        """The id without its number, e.g. OE-CORE-GEN."""
        return self.id.rpartition("-")[0]
