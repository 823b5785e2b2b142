"""Static state, live evidence and known deviations: what each pair of them becomes."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from conformance.http.origin import parse_origin
from conformance.http.target import HttpTarget
from conformance.model.status import SkipReason, Status
from conformance.mutants.http.ask import CONTEXT_TOKENS
from conformance.mutants.http.fixture import fixture_profile
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.server import serving
from conformance.mutants.http.table import http_mutants
from conformance.runner.budget import Budget
from conformance.runner.http_session import HttpOptions
from conformance.runner.report import Report
from conformance.runner.run import run_http
from conformance.runner.selection import Selection
from conformance.runtimes.profile import Capability, Deviation, RuntimeProfile, State

BUDGET = Budget("test", 0, 100, 10_000, 0, 2)
N, N_IGNORED = "OE-HTTP-CHAT-020", "chat-n-ignored"


def mutant(name: str) -> HttpMutant:
    return next(each for each in http_mutants() if each.name == name)


def with_state(state: State, name: str = "chat.n", **more: str) -> RuntimeProfile:
    profile = fixture_profile()
    changed = {**profile.capabilities, name: Capability(name, state, evidence="seen", **more)}
    return replace(profile, capabilities=MappingProxyType(changed))


def judged(
    profile: RuntimeProfile,
    broken: str = "",
    ids: tuple[str, ...] = (N,),
    **options: object,
) -> Report:
    with serving(mutant(broken) if broken else None) as server:
        return run_http(
            HttpOptions(
                HttpTarget(parse_origin(server.origin)),
                profile,
                scripted=True,
                context_tokens=CONTEXT_TOKENS,
                budget=BUDGET,
                selection=Selection(ids=ids),
                **options,  # type: ignore[arg-type]
            )
        )


def status(report: Report, requirement: str = N) -> tuple[Status, SkipReason | None]:
    row = next(each for each in report.judgements if each.requirement == requirement)
    return row.status, row.reason


def problems(report: Report) -> tuple[str, ...]:
    assert report.comparison is not None
    return report.comparison.problems


def test_supported_and_it_holds() -> None:
    """Pass, and nothing to say."""
    report = judged(with_state(State.SUPPORTED))
    assert status(report) == (Status.PASS, None)
    assert problems(report) == ()


def test_supported_and_broken() -> None:
    """Fail, and the run is red."""
    report = judged(with_state(State.SUPPORTED), N_IGNORED)
    assert status(report) == (Status.FAIL, None)
    assert report.verdict.exit_code == 1


def test_unsupported_and_broken() -> None:
    """Not applicable: the profile said so."""
    report = judged(with_state(State.UNSUPPORTED), N_IGNORED)
    assert status(report) == (Status.NOT_APPLICABLE, SkipReason.CAPABILITY_ABSENT)
    assert report.failures == ()
    assert problems(report) == ()


def test_unsupported_and_it_holds() -> None:
    """STALE-PROFILE: the run is red until the profile is corrected; the claim is not touched."""
    report = judged(with_state(State.UNSUPPORTED))
    assert status(report) == (Status.PASS, None)
    assert any("STALE-PROFILE" in line and N in line for line in problems(report))
    assert report.verdict.exit_code == 1


@pytest.mark.parametrize("broken", ["", N_IGNORED])
def test_unknown_claims_nothing(broken: str) -> None:
    """What is observed is told, and neither passes nor fails."""
    report = judged(with_state(State.UNKNOWN), broken)
    assert status(report) == (Status.NOT_APPLICABLE, SkipReason.UNCLAIMED)
    detail = next(each.detail for each in report.judgements if each.requirement == N)
    assert "observed only" in detail
    assert problems(report) == ()


def test_conditional_needs_its_condition() -> None:
    """Without the operator's word it is not run; with it, it is judged as supported."""
    profile = with_state(State.CONDITIONAL, condition="two-slots", when="two slots")
    assert status(judged(profile)) == (Status.NOT_APPLICABLE, SkipReason.CONDITION)
    stated = judged(profile, N_IGNORED, conditions=("two-slots",))
    assert status(stated) == (Status.FAIL, None)


def deviating(actual: str, *, scripted: bool = False, requirement: str = N) -> RuntimeProfile:
    known = Deviation(requirement, "n is ignored", actual, "https://example.org/1", scripted)
    return replace(fixture_profile(), deviations=(known,))


def test_a_known_deviation_shows() -> None:
    """It fails as described: green, named, and claimed by nobody."""
    report = judged(deviating("# choices"), N_IGNORED)
    assert status(report) == (Status.FAIL, None)
    assert report.known(N) is not None
    assert problems(report) == ()
    assert report.verdict.exit_code == 0
    assert "1 known deviation" in report.verdict.text


def test_a_known_deviation_does_not_show() -> None:
    """STALE-PROFILE."""
    report = judged(deviating("# choices"))
    assert any("STALE-PROFILE" in line for line in problems(report))
    assert report.verdict.exit_code == 1


def test_a_known_deviation_of_the_scripted_model_may_hold() -> None:
    """Another model need not show it."""
    report = judged(deviating("# choices", scripted=True))
    assert report.verdict.exit_code == 1
    with serving() as server:
        options = HttpOptions(
            HttpTarget(parse_origin(server.origin)),
            deviating("# choices", scripted=True),
            budget=BUDGET,
            selection=Selection(ids=(N,)),
        )
        assert problems(run_http(options)) == ()


def test_it_fails_in_another_way() -> None:
    """A known deviation hides no other one."""
    report = judged(deviating("no choices at all"), N_IGNORED)
    assert any("another reason" in line for line in problems(report))
    assert report.verdict.exit_code == 1


def test_a_warning_may_be_a_known_deviation() -> None:
    """A SHOULD only warns, and its deviation is stale when it does not."""
    seed = "OE-HTTP-CHAT-026"
    profile = deviating("# in # calls", requirement=seed)
    report = judged(profile, "chat-seed-ignored", (seed,))
    assert status(report, seed) == (Status.WARN, None)
    assert report.known(seed) is not None
    assert problems(report) == ()
    assert any("STALE-PROFILE" in line for line in problems(judged(profile, "", (seed,))))


def test_contracts_that_no_route_follows_are_not_judged() -> None:
    """Their rows say so; they reduce nothing."""
    report = judged(fixture_profile(), ids=("OE-*",))
    others = [
        each for each in report.judgements if each.reason is SkipReason.PROFILE_NOT_ADVERTISED
    ]
    assert all(each.status is Status.NOT_APPLICABLE for each in others)
    assert {verdict.profile for verdict in report.verdict.profiles} == fixture_profile().contracts
