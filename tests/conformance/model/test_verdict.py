"""How judgements add up: claims, counts, exit codes and the laws that they obey."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.errors import HarnessError
from conformance.model.claim import RANKING, Claim, LegacyIdentity
from conformance.model.facts import Facts
from conformance.model.judgement import REASONS, Judgement
from conformance.model.profile import Prerequisite, Profile
from conformance.model.requirement import Level, Requirement
from conformance.model.status import EXECUTED, SkipReason, Status
from conformance.model.verdict import RunVerdict, judge_profile, judge_run
from oe_wire import v1

LEGACY = LegacyIdentity(1, "v0.1.0")
CORE_NEEDED = (Prerequisite("core", 1, 0),)


def profile(
    name: str = "core",
    levels: Iterable[str] = ("MUST", "MUST", "SHOULD"),
    prerequisites: tuple[Prerequisite, ...] = (),
    legacy: Iterable[bool] = (),
) -> Profile:
    flags = list(legacy)
    rows = tuple(
        Requirement(
            f"OE-{name.upper()}-{number:03}",
            name,
            Level(level),
            "text",
            ("D",),
            legacy=flags[number] if flags else False,
        )
        for number, level in enumerate(levels)
    )
    return Profile(
        name=name, major=1, minor=0, stage="candidate", summary="", roles=("aggregated",),
        capability="", health_services=(), prerequisites=prerequisites, features=(),
        incompatible=(), id_prefixes=(f"OE-{name.upper()}",), messages=(), services=(),
        capabilities=(), requirements=rows, source=f"{name}.toml", digest="",
    )  # fmt: skip


def row(status: Status, number: int = 0, name: str = "core") -> Judgement:
    """A judgement with a reason that goes with its status."""
    allowed = REASONS.get(status)
    plain = status in (Status.WARN, Status.ERROR) or not allowed
    reason = None if plain else min(allowed)
    return Judgement(f"OE-{name.upper()}-{number:03}", status, reason)


def rows(*statuses: Status, name: str = "core") -> list[Judgement]:
    return [row(status, number, name) for number, status in enumerate(statuses)]


PASS, FAIL, WARN, FLAKY, ERROR = (
    Status.PASS,
    Status.FAIL,
    Status.WARN,
    Status.FLAKY,
    Status.ERROR,
)
HOOK, BLOCKED, EXCLUDED, ABSENT = (
    Status.HOOK_MISSING,
    Status.BLOCKED,
    Status.EXCLUDED,
    Status.NOT_APPLICABLE,
)


@pytest.mark.parametrize(
    ("statuses", "claim", "text"),
    [
        ([PASS, PASS, PASS], Claim.SUCCESS, "conformant to core 1.0"),
        ([PASS, ABSENT, WARN], Claim.SUCCESS, "conformant to core 1.0"),
        (
            [PASS, HOOK],
            Claim.SUCCESS_REDUCED,
            "conformant to core 1.0 (reduced coverage: 1 unchecked, 1 need hooks)",
        ),
        (
            [PASS, BLOCKED, PASS],
            Claim.SUCCESS_REDUCED,
            "conformant to core 1.0 (reduced coverage: 1 blocked)",
        ),
        ([PASS, EXCLUDED, PASS], Claim.PARTIAL, "partial: core 1.0, 1 row excluded"),
        ([PASS, FAIL, PASS], Claim.FAILURE, "not conformant to core 1.0 (1 failed)"),
        ([FLAKY, FAIL, PASS], Claim.FAILURE, "not conformant to core 1.0 (1 failed, 1 flaky)"),
        ([FAIL, ERROR, EXCLUDED], Claim.FAILURE, "not conformant to core 1.0 (1 failed)"),
        ([PASS, ERROR, PASS], Claim.NOT_JUDGED, "core 1.0 not judged: 1 error"),
        ([ABSENT, HOOK, EXCLUDED], Claim.NOT_JUDGED, "core 1.0 not judged: nothing executed"),
        ([], Claim.NOT_JUDGED, "core 1.0 not judged: nothing executed"),
        ([PASS, PASS, FAIL], Claim.SUCCESS, "conformant to core 1.0"),
        ([PASS, PASS, FLAKY], Claim.SUCCESS, "conformant to core 1.0"),
    ],
)
def test_claims_of_a_profile(statuses: list[Status], claim: Claim, text: str) -> None:
    """Two MUST rows and a SHOULD row give this claim and this sentence."""
    verdict = judge_profile(profile(), rows(*statuses))
    assert (verdict.claim, verdict.text) == (claim, text)


def test_counts_expected_executed_and_unchecked() -> None:
    """Applicable rows that were not excluded are expected, judged ones executed."""
    levels = ["MUST"] * 7 + ["SHOULD"]
    statuses = [PASS, WARN, HOOK, BLOCKED, EXCLUDED, ABSENT]
    judged = [*rows(*statuses), row(FAIL, 7)]
    verdict = judge_profile(profile(levels=levels), judged)
    assert verdict.unchecked == ("OE-CORE-006",)
    assert verdict.expected == 6
    assert verdict.executed == 3
    assert verdict.counts == {PASS: 1, WARN: 2, HOOK: 1, BLOCKED: 1, EXCLUDED: 1, ABSENT: 1}
    assert verdict.status is EXCLUDED


def test_a_should_row_warns_and_never_fails() -> None:
    """A violated SHOULD counts as a warning in status and counts."""
    verdict = judge_profile(profile(levels=["MUST", "SHOULD", "MAY"]), rows(PASS, FAIL, FLAKY))
    assert verdict.counts == {PASS: 1, WARN: 2}
    assert (verdict.status, verdict.claim) == (WARN, Claim.SUCCESS)


@pytest.mark.parametrize("claim", [Claim.FAILURE, Claim.BLOCKED])
def test_a_failed_prerequisite_blocks(claim: Claim, facts: Callable[..., Facts]) -> None:
    """Nothing is claimed for a profile whose prerequisite failed or is itself blocked."""
    chain = [
        profile("tasks", ["MUST"], (Prerequisite("admin", 1, 0),)),
        profile("admin", ["MUST"], CORE_NEEDED),
        profile("core", ["MUST"]),
    ]
    judged = [row(PASS, name="tasks"), row(PASS, name="admin"), row(FAIL)]
    verdict = judge_run(chain, judged, facts())
    by_name = {part.profile: part for part in verdict.profiles}
    assert [part.profile for part in verdict.profiles] == ["tasks", "admin", "core"]
    assert by_name["admin"].claim is Claim.BLOCKED
    assert by_name["admin"].text == "admin 1.0 blocked: core 1.0 failure"
    assert by_name["tasks"].text == "tasks 1.0 blocked: admin 1.0 blocked"
    assert (verdict.claim, verdict.exit_code) == (Claim.FAILURE, 1)


@pytest.mark.parametrize(
    ("core", "claim"),
    [
        ([PASS], Claim.SUCCESS),
        ([HOOK], Claim.PARTIAL),
        ([EXCLUDED], Claim.PARTIAL),
        ([ERROR], Claim.PARTIAL),
        ([FAIL], Claim.BLOCKED),
    ],
)
def test_a_profile_claims_no_more_than_its_prerequisite(
    core: list[Status], claim: Claim, facts: Callable[..., Facts]
) -> None:
    """A prerequisite that was not judged in full leaves a partial claim at best."""
    both = [profile("core", ["MUST"]), profile("admin", ["MUST"], CORE_NEEDED)]
    verdict = judge_run(both, [*rows(*core), row(PASS, name="admin")], facts())
    assert verdict.profiles[1].claim is claim


def test_a_prerequisite_outside_the_run_leaves_a_partial_claim(
    facts: Callable[..., Facts],
) -> None:
    """Selecting one profile alone never makes it conformant."""
    admin = profile("admin", ["MUST"], CORE_NEEDED)
    verdict = judge_run([admin], [row(PASS, name="admin"), row(EXCLUDED)], facts())
    assert verdict.text == "partial: admin 1.0, core 1.0 not judged in full"
    assert (verdict.claim, verdict.exit_code) == (Claim.PARTIAL, 0)


def test_its_own_failure_outweighs_a_failed_prerequisite(facts: Callable[..., Facts]) -> None:
    """Evidence against the profile itself is not hidden behind core."""
    both = [profile("core", ["MUST"]), profile("admin", ["MUST"], CORE_NEEDED)]
    verdict = judge_run(both, [row(FAIL), row(FAIL, name="admin")], facts())
    assert verdict.profiles[1].claim is Claim.FAILURE


@pytest.mark.parametrize(
    ("statuses", "claim", "exit_code"),
    [
        ([PASS, PASS, PASS], Claim.SUCCESS, 0),
        ([PASS, HOOK, PASS], Claim.SUCCESS_REDUCED, 0),
        ([PASS, EXCLUDED, PASS], Claim.PARTIAL, 0),
        ([PASS, FAIL, PASS], Claim.FAILURE, 1),
        ([FLAKY, PASS, PASS], Claim.FAILURE, 1),
        ([FAIL, ERROR, PASS], Claim.FAILURE, 1),
        ([PASS, ERROR, PASS], Claim.NOT_JUDGED, 2),
        ([PASS, PASS, ERROR], Claim.NOT_JUDGED, 2),
        ([ABSENT, EXCLUDED, HOOK], Claim.NOT_JUDGED, 2),
        ([], Claim.NOT_JUDGED, 2),
    ],
)
def test_exit_codes(
    statuses: list[Status], claim: Claim, exit_code: int, facts: Callable[..., Facts]
) -> None:
    """0 conformant, 1 not, 2 could not be judged; a failure beats an error."""
    verdict = judge_run([profile()], rows(*statuses), facts())
    assert (verdict.claim, verdict.exit_code) == (claim, exit_code)


def test_a_run_over_nothing_is_not_green(facts: Callable[..., Facts]) -> None:
    """No profile at all exits with 2 and says so."""
    verdict = judge_run([], [], facts())
    assert (verdict.claim, verdict.exit_code) == (Claim.NOT_JUDGED, 2)
    assert "nothing to judge" in verdict.text


def test_an_unchecked_profile_reduces_coverage_of_the_run(facts: Callable[..., Facts]) -> None:
    """A profile without any check cannot be judged, and the run is not a full success."""
    both = [profile("core", ["MUST"]), profile("admin", ["MUST"], CORE_NEEDED)]
    verdict = judge_run(both, rows(PASS), facts())
    assert verdict.text == "conformant to core 1.0; admin 1.0 not judged: nothing executed"
    assert (verdict.claim, verdict.exit_code) == (Claim.SUCCESS_REDUCED, 0)


def test_a_profile_without_rows_has_no_say(facts: Callable[..., Facts]) -> None:
    """The testing profile states no requirements yet and takes nothing away."""
    both = [profile("core", ["MUST"]), profile("testing", [], CORE_NEEDED)]
    verdict = judge_run(both, rows(PASS), facts())
    assert (verdict.claim, verdict.exit_code) == (Claim.SUCCESS, 0)
    assert (verdict.profiles[1].claim, verdict.profiles[1].executed) == (Claim.NOT_JUDGED, 0)


@pytest.mark.parametrize("status", [PASS, FAIL])
def test_an_interrupted_run_exits_with_two(status: Status, facts: Callable[..., Facts]) -> None:
    """Ctrl-C gives 2 whatever was seen before, by flag or by a row's reason."""
    stopped = Judgement("OE-CORE-001", ERROR, SkipReason.INTERRUPTED)
    by_row = judge_run([profile()], [row(status), stopped], facts())
    by_flag = judge_run([profile()], rows(status), facts(), interrupted=True)
    for verdict in (by_row, by_flag):
        assert verdict.exit_code == 2
        assert verdict.text.startswith("interrupted before a claim")
        assert verdict.claim is (Claim.FAILURE if status is FAIL else Claim.NOT_JUDGED)


def test_a_time_limit_is_no_verdict(facts: Callable[..., Facts]) -> None:
    """Rows that the time limit cut off make the run unjudged, unless something failed."""
    late = Judgement("OE-CORE-001", ERROR, SkipReason.TIME_LIMIT)
    assert judge_run([profile()], [row(PASS), late], facts()).exit_code == 2
    assert judge_run([profile()], [row(FAIL), late], facts()).exit_code == 1


def test_core_of_an_engine_that_cannot_generate_names_its_role(
    facts: Callable[..., Facts],
) -> None:
    """The claim says for which role it was made."""
    prefill = facts(role="prefill", generates=False)
    verdict = judge_run([profile(levels=["MUST"])], rows(PASS), prefill)
    assert verdict.text == "conformant to core 1.0 (role: prefill)"


def legacy_run(facts: Callable[..., Facts], statuses: list[Status]) -> RunVerdict:
    engine = v1.ServerInfo(schema_revision=1)
    target = facts(legacy=True, engine=engine, capabilities=None, profiles=frozenset())
    rows_of_core = profile("core", ["MUST"] * 3, legacy=[True, True, False])
    return judge_run([rows_of_core], rows(*statuses), target)


@pytest.mark.parametrize(
    ("statuses", "exit_code", "text"),
    [
        ([PASS, PASS, ABSENT], 0, "v0.1.0-compatible, revision 1, dialect v0.1.0"),
        ([PASS, PASS], 0, "v0.1.0-compatible, revision 1, dialect v0.1.0"),
        (
            [PASS],
            0,
            "v0.1.0-compatible, revision 1, dialect v0.1.0 (reduced coverage: 1 unchecked)",
        ),
        ([PASS, FAIL], 1, "not v0.1.0-compatible, revision 1, dialect v0.1.0 (1 failed)"),
        (
            [PASS, ERROR],
            2,
            "compatibility with v0.1.0, revision 1, dialect v0.1.0 not judged: 1 error",
        ),
        (
            [PASS, EXCLUDED],
            0,
            "partial: compatibility with v0.1.0, revision 1, dialect v0.1.0, 1 row excluded",
        ),
    ],
)
def test_legacy_engines_get_their_own_claim(
    statuses: list[Status], exit_code: int, text: str, facts: Callable[..., Facts]
) -> None:
    """Only rows flagged legacy count, and no version of core is ever claimed."""
    verdict = legacy_run(facts, statuses)
    assert (verdict.exit_code, verdict.text) == (exit_code, text)
    assert "core 1.0" not in verdict.text + verdict.profiles[0].text


def test_a_legacy_claim_covers_the_rows_of_every_profile(facts: Callable[..., Facts]) -> None:
    """A row that was excluded from another profile leaves the one claim partial."""
    target = facts(legacy=True, engine=v1.ServerInfo(schema_revision=1), profiles=frozenset())
    both = [
        profile("core", ["MUST"], legacy=[True]),
        profile("admin", ["MUST"], CORE_NEEDED, legacy=[True]),
    ]
    verdict = judge_run(both, [row(PASS), row(EXCLUDED, name="admin")], target)
    assert (verdict.claim, verdict.exit_code) == (Claim.PARTIAL, 0)


def test_a_row_judged_twice_is_a_fault_of_the_suite(facts: Callable[..., Facts]) -> None:
    """Two judgements of one row are never averaged."""
    with pytest.raises(HarnessError, match="OE-CORE-000 was judged twice"):
        judge_run([profile()], [row(PASS), row(FAIL)], facts())


def test_a_judged_row_of_an_unselected_profile_is_a_fault_of_the_suite(
    facts: Callable[..., Facts],
) -> None:
    """Only skips may come from profiles outside the verdict."""
    with pytest.raises(HarnessError, match="OE-TASKS-000 was judged"):
        judge_run([profile()], [row(PASS, name="tasks")], facts())
    skipped = [*rows(PASS, PASS, PASS), row(ABSENT, name="tasks")]
    assert judge_run([profile()], skipped, facts()).claim is Claim.SUCCESS
    with pytest.raises(HarnessError, match="no row of core"):
        judge_profile(profile(), [row(PASS, name="tasks")])


def test_two_versions_of_one_profile_are_a_fault_of_the_suite(
    facts: Callable[..., Facts],
) -> None:
    """A run judges one version of each profile."""
    with pytest.raises(HarnessError, match="one version"):
        judge_run([profile(), profile()], [], facts())


def test_a_cycle_of_prerequisites_is_a_fault_of_the_suite(facts: Callable[..., Facts]) -> None:
    """Loading refuses cycles; a verdict over one does not hang."""
    circle = [
        profile("core", [], (Prerequisite("admin", 1, 0),)),
        profile("admin", [], CORE_NEEDED),
    ]
    with pytest.raises(HarnessError, match="cycle: admin, core"):
        judge_run(circle, [], facts())


@pytest.mark.parametrize("status", list(Status))
def test_a_status_takes_only_its_own_reasons(status: Status) -> None:
    """A skip without its true reason, or a pass with any, cannot be written down."""
    allowed = REASONS.get(status, frozenset())
    for reason in SkipReason:
        if reason in allowed:
            assert Judgement("OE-CORE-000", status, reason).reason is reason
        else:
            with pytest.raises(HarnessError, match=status):
                Judgement("OE-CORE-000", status, reason)
    if allowed and status not in (WARN, ERROR):
        with pytest.raises(HarnessError, match="reason none"):
            Judgement("OE-CORE-000", status)


# Property tests: two profiles, core and one that needs it, with arbitrary judgements.

quick = settings(deadline=None, max_examples=200)
LEVELS = st.lists(st.sampled_from(["MUST", "MUST", "SHOULD", "MAY"]), min_size=1, max_size=5)
RANK = {claim: number for number, claim in enumerate(RANKING)}


class Aware:
    """A profile-aware engine."""

    model = capabilities = engine = None
    role, dialect, legacy, generates = "aggregated", "v0.1.0", False, True
    profiles = frozenset({"core", "admin"})


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Profile], list[Judgement]]:
    core = profile("core", draw(LEVELS))
    admin = profile("admin", draw(LEVELS), CORE_NEEDED)
    judged = []
    for part in (core, admin):
        for number in range(len(part.requirements)):
            status = draw(st.none() | st.sampled_from(list(Status)))
            if status is not None:
                judged.append(row(status, number, part.name))
    return [core, admin], judged


@quick
@given(runs(), st.sampled_from([FAIL, FLAKY]), st.sampled_from(["core", "admin"]))
def test_a_failing_must_never_improves_a_claim(
    run: tuple[list[Profile], list[Judgement]], status: Status, name: str
) -> None:
    """Adding a failing row to a profile leaves every claim as it was or weaker."""
    profiles, judged = run
    before = judge_run(profiles, judged, Aware())
    longer = [
        profile(p.name, [*(r.level for r in p.requirements), "MUST"], p.prerequisites)
        if p.name == name
        else p
        for p in profiles
    ]
    last = len(next(p for p in profiles if p.name == name).requirements)
    after = judge_run(longer, [*judged, row(status, last, name)], Aware())
    assert after.claim is Claim.FAILURE
    assert after.exit_code == 1
    for old, new in zip(before.profiles, after.profiles, strict=True):
        assert RANK[new.claim] >= RANK[old.claim]


@quick
@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_rows_is_irrelevant(
    run: tuple[list[Profile], list[Judgement]], generator: random.Random
) -> None:
    """Shuffled judgements give the same verdict, and reversed profiles the same claims."""
    profiles, judged = run
    shuffled = generator.sample(judged, len(judged))
    verdict = judge_run(profiles, judged, Aware())
    assert judge_run(profiles, shuffled, Aware()) == verdict
    swapped = judge_run(profiles[::-1], shuffled, Aware())
    assert swapped.profiles == verdict.profiles[::-1]
    assert (swapped.claim, swapped.exit_code) == (verdict.claim, verdict.exit_code)


@quick
@given(runs())
def test_green_means_executed_and_unbroken(run: tuple[list[Profile], list[Judgement]]) -> None:
    """Exit code 0 needs something executed, no broken MUST and no error; 1 a broken MUST."""
    profiles, judged = run
    verdict = judge_run(profiles, judged, Aware())
    levels = {r.id: r.level for p in profiles for r in p.requirements}
    broken = [
        j for j in judged if j.status in (FAIL, FLAKY) and levels[j.requirement] is Level.MUST
    ]
    executed = sum(part.executed for part in verdict.profiles)
    assert executed == sum(j.status in EXECUTED for j in judged)
    if verdict.exit_code == 0:
        assert executed
        assert not broken
        assert all(j.status is not ERROR for j in judged)
    assert (verdict.exit_code == 1) is bool(broken)


@quick
@given(runs())
def test_counts_add_up(run: tuple[list[Profile], list[Judgement]]) -> None:
    """Counts and unchecked rows cover every row of a profile once."""
    profiles, judged = run
    for part, verdict in zip(profiles, judge_run(profiles, judged, Aware()).profiles, strict=True):
        skipped = verdict.counts.get(ABSENT, 0) + verdict.counts.get(EXCLUDED, 0)
        total = sum(verdict.counts.values()) + len(verdict.unchecked)
        assert total == len(part.requirements)
        assert verdict.expected == total - skipped
        assert verdict.executed <= verdict.expected
        assert not (verdict.claim is Claim.SUCCESS and verdict.executed < verdict.expected)
