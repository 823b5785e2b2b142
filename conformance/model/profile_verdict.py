"""The verdict of one profile: how the judgements of its requirements add up. No I/O.

A profile is atomic: one MUST that fails, or only sometimes holds, and nothing is claimed for it.
What was not observed never counts for the target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.errors import HarnessError
from conformance.model.claim import (
    Claim,
    LegacyIdentity,
    claim_text,
    legacy_subject,
    profile_subject,
)
from conformance.model.judgement import Judgement
from conformance.model.profile import Profile
from conformance.model.requirement import Level, Requirement
from conformance.model.status import EXECUTED, Status, worst

_UNOBSERVED = (Status.HOOK_MISSING, Status.BLOCKED)
_VIOLATION = frozenset({Status.FAIL, Status.FLAKY})


@dataclass(frozen=True, slots=True)
class ProfileVerdict:
    """Verdict of one profile.

    `counts` holds every status that occurred, with SHOULD and MAY violations as warnings.
    `expected` counts applicable rows that the operator did not exclude, `executed` those of
    them that were judged, `unchecked` lists rows that no check covers.
    """

    profile: str
    version: str
    status: Status
    claim: Claim
    text: str
    counts: Mapping[Status, int]
    expected: int
    executed: int
    unchecked: tuple[str, ...]


def weigh(requirement: Requirement, status: Status) -> Status:
    """The status as it counts: only a MUST can fail a target, the rest warns."""
    if requirement.level is not Level.MUST and status in _VIOLATION:
        return Status.WARN
    return status


def judge_profile(
    profile: Profile,
    judgements: Iterable[Judgement],
    *,
    legacy: LegacyIdentity | None = None,
    role: str = "",
) -> ProfileVerdict:
    """Verdict of `profile` by itself, without its prerequisites.

    A row without a judgement is unchecked; on a legacy target only rows flagged legacy count.
    `role` is named in the claim of a core that cannot generate because of it. Raises
    HarnessError for two judgements of one row or a row of another profile.
    """
    by_id = _by_id(judgements)
    rows = {row.id: row for row in profile.requirements}
    for foreign in by_id.keys() - rows.keys():
        raise HarnessError(f"judgement of {foreign}, which is no row of {profile.title}")
    statuses = {key: weigh(rows[key], row.status) for key, row in by_id.items()}
    unchecked = tuple(
        row.id
        for row in profile.requirements
        if row.id not in by_id and (legacy is None or row.legacy)
    )
    counts = Counter(statuses.values())
    expected = len(statuses) - counts[Status.NOT_APPLICABLE] - counts[Status.EXCLUDED]
    claim = claim_of(counts, len(unchecked))
    subject = legacy_subject(legacy, profile.name) if legacy else profile_subject(profile.title)
    text = claim_text(claim, subject, counts, len(unchecked))
    return ProfileVerdict(
        profile=profile.name,
        version=profile.version,
        status=worst(statuses.values()),
        claim=claim,
        text=f"{text} (role: {role})" if role and holds(claim) else text,
        counts=_frozen(counts),
        expected=expected + len(unchecked),
        executed=_executed(counts),
        unchecked=unchecked,
    )


def _by_id(judgements: Iterable[Judgement]) -> dict[str, Judgement]:
    found: dict[str, Judgement] = {}
    for judgement in judgements:
        if judgement.requirement in found:
            raise HarnessError(f"{judgement.requirement} was judged twice")
        found[judgement.requirement] = judgement
    return found


def _frozen(counts: Counter[Status]) -> Mapping[Status, int]:
    return MappingProxyType({status: counts[status] for status in Status if counts[status]})


def _executed(counts: Mapping[Status, int]) -> int:
    return sum(counts.get(status, 0) for status in EXECUTED)


def claim_of(counts: Mapping[Status, int], unchecked: int) -> Claim:
    """What weighed statuses and a number of unchecked rows allow to be claimed."""
    if any(counts.get(status) for status in _VIOLATION):
        return Claim.FAILURE
    if counts.get(Status.ERROR) or not _executed(counts):
        return Claim.NOT_JUDGED
    if counts.get(Status.EXCLUDED):
        return Claim.PARTIAL
    if unchecked or any(counts.get(status) for status in _UNOBSERVED):
        return Claim.SUCCESS_REDUCED
    return Claim.SUCCESS


def holds(claim: Claim) -> bool:
    """Whether the target may call itself conformant."""
    return claim in (Claim.SUCCESS, Claim.SUCCESS_REDUCED)
