"""What a profile or a run may claim, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from conformance.model.status import Status

RELEASE = "v0.1.0"  # the upstream release that legacy engines are held to


class Claim(StrEnum):
    """What may be said of a profile after a run."""

    SUCCESS = "success"
    SUCCESS_REDUCED = "success_reduced"  # nothing failed, but some rows were not observed
    PARTIAL = "partial"  # the operator excluded rows: never conformant
    NOT_JUDGED = "not_judged"
    BLOCKED = "blocked"  # a prerequisite profile failed
    FAILURE = "failure"


# Best to worst.
RANKING: tuple[Claim, ...] = (
    Claim.SUCCESS,
    Claim.SUCCESS_REDUCED,
    Claim.PARTIAL,
    Claim.NOT_JUDGED,
    Claim.BLOCKED,
    Claim.FAILURE,
)


def weaker(first: Claim, second: Claim) -> Claim:
    """The claim that says less for the target."""
    return max(first, second, key=RANKING.index)


@dataclass(frozen=True, slots=True)
class LegacyIdentity:
    """What a v0.1.0 engine says it speaks: schema_revision and the numbering it uses.

    single_service: whether under the paths of the first drafts, where no v0.1.0 client looks.
    """

    revision: int
    dialect: str
    single_service: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """How a claim names its subject: when it holds, when it does not, and as a noun."""

    holds: str
    fails: str
    noun: str


def profile_subject(title: str) -> Subject:
    """Subject of a profile of a profile-aware engine; `title` is name and version."""
    return Subject(f"conformant to {title}", f"not conformant to {title}", title)


def legacy_subject(identity: LegacyIdentity, profile: str = "") -> Subject:
    """Subject of a legacy engine, or of its rows in one profile. Never names a core version."""
    spoken = f"revision {identity.revision}, dialect {identity.dialect}"
    spoken += ", single service" if identity.single_service else ""
    rows = f", {profile} rows" if profile else ""
    return Subject(
        f"{RELEASE}-compatible, {spoken}{rows}",
        f"not {RELEASE}-compatible, {spoken}{rows}",
        f"compatibility with {RELEASE}, {spoken}{rows}",
    )


def claim_text(
    claim: Claim, subject: Subject, counts: Mapping[Status, int], unchecked: int, cause: str = ""
) -> str:
    """One sentence. `cause` names the prerequisite profile that limits the claim."""
    match claim:
        case Claim.SUCCESS:
            return subject.holds
        case Claim.SUCCESS_REDUCED:
            parts = [f"{unchecked} unchecked" if unchecked else ""]
            parts += _counted(
                counts, {Status.HOOK_MISSING: "need hooks", Status.BLOCKED: "blocked"}
            )
            return f"{subject.holds} (reduced coverage: {', '.join(filter(None, parts))})"
        case Claim.PARTIAL:
            return f"partial: {subject.noun}, {cause or _excluded(counts)}"
        case Claim.BLOCKED:
            return f"{subject.noun} blocked: {cause}"
        case Claim.FAILURE:
            parts = _counted(counts, {Status.FAIL: "failed", Status.FLAKY: "flaky"})
            return f"{subject.fails} ({', '.join(parts)})" if parts else subject.fails
        case Claim.NOT_JUDGED:
            errors = counts.get(Status.ERROR, 0)
            why = f"{errors} error{_s(errors)}" if errors else "nothing executed"
            return f"{subject.noun} not judged: {why}"


def _counted(counts: Mapping[Status, int], words: Mapping[Status, str]) -> list[str]:
    return [f"{counts[status]} {word}" for status, word in words.items() if counts.get(status)]


def _excluded(counts: Mapping[Status, int]) -> str:
    number = counts.get(Status.EXCLUDED, 0)
    return f"{number} row{_s(number)} excluded"


def _s(number: int) -> str:
    return "" if number == 1 else "s"
