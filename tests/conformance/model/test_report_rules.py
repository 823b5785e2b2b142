"""OE-PROF-002, which binds reports: a profile is atomic, and there is no badge for a part of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.model.applicability import applicability
from conformance.model.claim import Claim
from conformance.model.facts import Facts
from conformance.model.judgement import Judgement
from conformance.model.profile import Profile
from conformance.model.profile_verdict import holds
from conformance.model.registry import default_registry
from conformance.model.requirement import Level, Subject
from conformance.model.status import SkipReason, Status
from conformance.model.verdict import judge_profile, judge_run

PROFILES = default_registry().profiles


def _judgements(profile: Profile, failed: str, status: Status = Status.FAIL) -> list[Judgement]:
    """Every row of the profile passes but one."""
    return [
        Judgement(row.id, status if row.id == failed else Status.PASS)
        for row in profile.requirements
        if row.subject is Subject.ENGINE
    ]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_one_broken_must_and_nothing_is_claimed(profile: Profile) -> None:
    """Whichever MUST of the shipped profile is broken, or only sometimes holds."""
    for row in profile.requirements:
        if row.level is not Level.MUST or row.subject is Subject.REPORT:
            continue
        for status in (Status.FAIL, Status.FLAKY):
            verdict = judge_profile(profile, _judgements(profile, row.id, status))
            assert verdict.claim is Claim.FAILURE
            assert verdict.text.startswith(f"not conformant to {profile.title}")


def test_a_broken_profile_is_not_talked_up_by_the_others(facts: Callable[..., Facts]) -> None:
    """Core holds and scheduling_load does not: the run fails, and says so of the one."""
    chosen = [profile for profile in PROFILES if profile.name in ("core", "scheduling_load")]
    broken = chosen[1].requirements[0].id
    judged = [each for profile in chosen for each in _judgements(profile, broken)]
    verdict = judge_run(chosen, judged, facts())
    assert verdict.claim is Claim.FAILURE
    assert verdict.exit_code == 1
    assert [holds(each.claim) for each in verdict.profiles] == [True, False]


@pytest.mark.parametrize("legacy", [False, True])
def test_a_rule_for_reports_binds_no_engine(facts: Callable[..., Facts], *, legacy: bool) -> None:
    """It is never judged, never unchecked, and says why."""
    bound = applicability(default_registry().requirement("OE-PROF-002"), facts(legacy=legacy))
    assert not bound.applies
    assert bound.reason is SkipReason.REPORT_RULE
