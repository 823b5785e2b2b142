"""The verdict of a run: profile verdicts, limited by their prerequisites, and an exit code. No I/O.

A run that observed nothing is not green.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.errors import HarnessError
from conformance.model.claim import (
    Claim,
    LegacyIdentity,
    claim_text,
    legacy_subject,
    profile_subject,
    weaker,
)
from conformance.model.facts import Facts, read_field
from conformance.model.judgement import Judgement
from conformance.model.profile import Profile
from conformance.model.profile_verdict import ProfileVerdict, claim_of, holds, judge_profile
from conformance.model.status import SkipReason, Status

__all__ = [
    "CONFORMANT",
    "NOT_CONFORMANT",
    "NOT_JUDGED",
    "Claim",
    "Judgement",
    "LegacyIdentity",
    "ProfileVerdict",
    "RunVerdict",
    "judge_profile",
    "judge_run",
]

CONFORMANT, NOT_CONFORMANT, NOT_JUDGED = 0, 1, 2  # exit codes

_NOT_RUN = frozenset({Status.NOT_APPLICABLE, Status.EXCLUDED})


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """Verdict of a run; `exit_code` is 0 conformant, 1 not conformant, 2 could not be judged."""

    profiles: tuple[ProfileVerdict, ...]
    claim: Claim
    exit_code: int
    text: str


def judge_run(
    profiles: Sequence[Profile],
    judgements: Iterable[Judgement],
    facts: Facts,
    *,
    interrupted: bool = False,
) -> RunVerdict:
    """Verdict of a run over `profiles` (the advertised ones that were selected, in any order).

    On a legacy target the profiles only group its rows, and the run makes one claim for all of
    them. A run with a row that was interrupted exits with 2 whatever it saw before. Rows of
    other profiles may only say that they do not apply or were excluded. Raises HarnessError for
    any other row of another profile, and for two judgements of one row.
    """
    rows = list(judgements)
    legacy = _legacy_identity(facts)
    role = "" if facts.generates else facts.role
    parts = _split(profiles, rows)
    verdicts = {
        profile.name: judge_profile(
            profile,
            parts[profile.name],
            legacy=legacy,
            role=role if profile.name == "core" else "",
        )
        for profile in profiles
    }
    if legacy is None:
        verdicts = _limit(profiles, verdicts)
    stopped = interrupted or any(row.reason is SkipReason.INTERRUPTED for row in rows)
    ordered = tuple(verdicts[profile.name] for profile in profiles)
    counts, unchecked = _total(ordered)
    claim = claim_of(counts, unchecked) if legacy else _run_claim(ordered)
    text = _run_text(ordered)
    if legacy:
        text = claim_text(claim, legacy_subject(legacy), counts, unchecked)
    if stopped:
        claim = weaker(claim, Claim.NOT_JUDGED)
    return RunVerdict(
        profiles=ordered,
        claim=claim,
        exit_code=NOT_JUDGED if stopped else _exit_code(claim),
        text=f"interrupted before a claim; so far: {text}" if stopped else text,
    )


def _legacy_identity(facts: Facts) -> LegacyIdentity | None:
    if not facts.legacy:
        return None
    revision = read_field(facts.engine, "schema_revision")
    number = revision if isinstance(revision, int) else 0
    return LegacyIdentity(number, facts.dialect, facts.single_service)


def _split(profiles: Sequence[Profile], rows: list[Judgement]) -> dict[str, list[Judgement]]:
    owner = {row.id: profile.name for profile in profiles for row in profile.requirements}
    parts: dict[str, list[Judgement]] = {profile.name: [] for profile in profiles}
    if len(parts) != len(profiles):
        raise HarnessError("a run judges one version of each profile")
    for row in rows:
        if row.requirement in owner:
            parts[owner[row.requirement]].append(row)
        elif row.status not in _NOT_RUN:
            raise HarnessError(f"{row.requirement} was judged, but its profile was not selected")
    return parts


def _limit(
    profiles: Sequence[Profile], verdicts: Mapping[str, ProfileVerdict]
) -> dict[str, ProfileVerdict]:
    """Lower each claim to what the prerequisites of the profile allow.

    Conformant to a profile means conformant to its prerequisites too. A failed one blocks; one
    that was not judged in full leaves a partial claim at best.
    """
    limited: dict[str, ProfileVerdict] = {}
    waiting = list(profiles)
    while waiting:
        names = {profile.name for profile in waiting}
        ready = [p for p in waiting if names.isdisjoint(need.profile for need in p.prerequisites)]
        if not ready:
            raise HarnessError("prerequisites form a cycle: " + ", ".join(sorted(names)))
        for profile in ready:
            limited[profile.name] = _limited(profile, verdicts[profile.name], limited)
        waiting = [profile for profile in waiting if profile not in ready]
    return limited


def _limited(
    profile: Profile, verdict: ProfileVerdict, done: Mapping[str, ProfileVerdict]
) -> ProfileVerdict:
    claim, cause = verdict.claim, ""
    for need in profile.prerequisites:
        title = f"{need.profile} {need.major}.{need.minor}"
        prerequisite = done.get(need.profile)
        if prerequisite and prerequisite.claim in (Claim.FAILURE, Claim.BLOCKED):
            limit, reason = Claim.BLOCKED, f"{title} {prerequisite.claim}"
        elif prerequisite is None or not holds(prerequisite.claim):
            limit, reason = Claim.PARTIAL, f"{title} not judged in full"
        else:
            continue
        if weaker(claim, limit) is not claim:
            claim, cause = limit, reason
    if claim is verdict.claim:
        return verdict
    subject = profile_subject(profile.title)
    text = claim_text(claim, subject, verdict.counts, len(verdict.unchecked), cause)
    return replace(verdict, claim=claim, text=text)


def _run_claim(verdicts: Sequence[ProfileVerdict]) -> Claim:
    """Worst claim of the profiles.

    A profile that executed nothing cannot stop the others from being judged: it only reduces
    coverage, and not even that when nothing was expected of it.
    """
    if any(verdict.claim in (Claim.FAILURE, Claim.BLOCKED) for verdict in verdicts):
        return Claim.FAILURE
    errors = any(verdict.counts.get(Status.ERROR) for verdict in verdicts)
    if errors or not any(verdict.executed for verdict in verdicts):
        return Claim.NOT_JUDGED
    claim = Claim.SUCCESS
    for verdict in verdicts:
        if verdict.executed:
            claim = weaker(claim, verdict.claim)
        elif verdict.expected:
            claim = weaker(claim, Claim.SUCCESS_REDUCED)
    return claim


def _exit_code(claim: Claim) -> int:
    if claim in (Claim.FAILURE, Claim.BLOCKED):
        return NOT_CONFORMANT
    return NOT_JUDGED if claim is Claim.NOT_JUDGED else CONFORMANT


def _run_text(verdicts: Sequence[ProfileVerdict]) -> str:
    said = [verdict.text for verdict in verdicts if verdict.claim is not Claim.NOT_JUDGED]
    rest = [verdict.text for verdict in verdicts if verdict.claim is Claim.NOT_JUDGED]
    return "; ".join(said + rest) or "nothing to judge: no profile advertised"


def _total(verdicts: Sequence[ProfileVerdict]) -> tuple[Counter[Status], int]:
    counts: Counter[Status] = Counter()
    for verdict in verdicts:
        counts.update(verdict.counts)
    return counts, sum(len(verdict.unchecked) for verdict in verdicts)
