from __future__ import annotations

import itertools

import pytest
from hypothesis import strategies as st

from conformance.checks.probe import Interrupted, Probe
from conformance.errors import UnreachableError
from conformance.model.case import FRESH_ID, Case
from conformance.model.requirement import Level, Need
from conformance.model.status import SkipReason, Status
from conformance.runner.execute import execute
from conformance.runner.result import CheckResult
from oe_wire import v1
from tests.conformance.fake_engine import Behaviour, FakeEngine, Stream
from tests.conformance.runner.build import (
    BUDGET,
    counting,
    make_check,
    probe_for,
    requirement,
)


def holds(probe: Probe, case: Case) -> None:
    """A rule that is kept."""


def breaks(probe: Probe, case: Case) -> None:
    probe.fail("this", "that")


def tolerates(probe: Probe, case: Case) -> None:
    probe.tolerate("this", "nearly this")


def skips(probe: Probe, case: Case) -> None:
    probe.skip("no alias is declared")


def judged(engine: FakeEngine, body: object, **of_row: object) -> CheckResult:
    check = make_check(body)  # type: ignore[arg-type]
    with probe_for(engine, check) as probe:
        return execute(check, requirement(**of_row), probe, BUDGET, 1)  # type: ignore[arg-type]


def test_a_rule_that_holds_passes(engine: FakeEngine) -> None:
    """One judged case, no failure."""
    result = judged(engine, holds)
    assert (result.judgement.status, result.judgement.cases_judged) == (Status.PASS, 1)
    assert result.failure is None


def test_a_breach_that_always_shows_again_fails(engine: FakeEngine) -> None:
    """Every replay counts, and the evidence says what was expected and seen."""
    result = judged(engine, breaks)
    assert result.judgement.status is Status.FAIL
    assert result.failure is not None
    assert (result.failure.reproduced, result.failure.replays) == (3, 3)
    assert (result.failure.expected, result.failure.actual) == ("this", "that")


@pytest.mark.parametrize(
    "outcomes", [(breaks, holds, breaks, holds), (breaks, holds, holds, holds)]
)
def test_a_breach_that_shows_again_sometimes_or_never_is_flaky(
    engine: FakeEngine, outcomes: tuple[object, ...]
) -> None:
    """K of n replays with k < n is measured flakiness, not a failure."""
    result = judged(engine, counting(outcomes))  # type: ignore[arg-type]
    assert result.judgement.status is Status.FLAKY
    assert result.failure is not None
    assert result.failure.reproduced == sum(outcome is breaks for outcome in outcomes) - 1


def test_a_replay_that_judges_nothing_is_repeated(engine: FakeEngine) -> None:
    """It neither confirms nor clears: three of three that judged anything make a failure."""
    outcomes = (breaks, skips, breaks, skips, skips, breaks, breaks)
    result = judged(engine, counting(outcomes))
    assert result.judgement.status is Status.FAIL
    assert result.failure is not None
    assert (result.failure.reproduced, result.failure.replays) == (3, 3)


def test_a_breach_that_can_never_be_judged_again_is_flaky(engine: FakeEngine) -> None:
    """Replaying ends, and what was seen once is not called a failure."""
    result = judged(engine, counting((breaks, *[skips] * 20)))
    assert result.judgement.status is Status.FLAKY
    assert result.failure is not None
    assert result.failure.replays == 0


@pytest.mark.parametrize("level", [Level.SHOULD, Level.MAY])
def test_only_a_must_fails(engine: FakeEngine, level: Level) -> None:
    """A broken SHOULD or MAY warns."""
    assert judged(engine, breaks, level=level).judgement.status is Status.WARN


def test_a_tolerated_deviation_warns(engine: FakeEngine) -> None:
    """Whatever its level."""
    assert judged(engine, tolerates).judgement.status is Status.WARN


def test_a_premise_that_never_holds_is_vacuous(engine: FakeEngine) -> None:
    """Nothing judged is never a pass, and the reason is told."""
    judgement = judged(engine, skips).judgement
    assert (judgement.status, judgement.reason) == (Status.BLOCKED, SkipReason.VACUOUS)
    assert judgement.detail == "no alias is declared"


def test_a_premise_that_needs_a_hook_says_so(engine: FakeEngine) -> None:
    """Rows that only faults make observable are told apart from vacuous ones."""
    judgement = judged(engine, skips, needs=frozenset({Need.HOOK})).judgement
    assert judgement.status is Status.HOOK_MISSING


def test_a_case_that_costs_too_much_does_not_apply(engine: FakeEngine) -> None:
    """A limit that is out of reach is neutral, with its own reason."""
    judgement = judged(engine, lambda probe, _: probe.skip("a window", too_large=True)).judgement
    assert (judgement.status, judgement.reason) == (
        Status.NOT_APPLICABLE,
        SkipReason.LIMIT_TOO_LARGE,
    )


def test_a_fault_of_the_check_is_an_error(engine: FakeEngine) -> None:
    """The target is not blamed for it."""

    def faulty(probe: Probe, case: Case) -> None:
        raise ZeroDivisionError("oops")

    judgement = judged(engine, faulty).judgement
    assert judgement.status is Status.ERROR
    assert "oops" in judgement.detail


def test_a_lost_connection_is_an_error() -> None:
    """A target that went away gives no verdict."""
    with FakeEngine() as engine:
        check = make_check(
            lambda probe, _: probe.skip(str(probe.call("Control/GetServerInfo", ask)))
        )
        ask = v1.GetServerInfoRequest()
        with probe_for(engine, check) as probe:
            engine.__exit__(None, None, None)
            judgement = execute(check, requirement(), probe, BUDGET, 1).judgement
    assert judgement.status is Status.ERROR
    assert "connection lost" in judgement.detail


def test_an_interrupt_passes_through(engine: FakeEngine) -> None:
    """A stopped run does not turn into a verdict."""
    check = make_check(lambda probe, _: probe.skip(str(probe.call("Control/Health", health))))
    health = v1.HealthRequest()
    with probe_for(engine, check) as probe:
        probe._stop.set()
        with pytest.raises(Interrupted):
            execute(check, requirement(), probe, BUDGET, 1)


def test_a_failing_case_is_made_small(engine: FakeEngine) -> None:
    """Hypothesis shrinks to the least value that breaks the rule, and the seed repeats it."""

    def body(probe: Probe, case: Case) -> None:
        if case.params["number"] > 10:
            probe.fail("at most 10", "more")

    numbers = st.integers(0, 10_000).map(lambda number: Case(params={"number": number}))
    check = make_check(body, table=None, strategy=numbers)
    found = []
    for _ in range(2):
        with probe_for(engine, check) as probe:
            failure = execute(check, requirement(), probe, BUDGET, 7).failure
        assert failure is not None
        found.append(failure.case.params)
    assert found == [{"number": 11}, {"number": 11}]


def test_a_small_case_that_fails_by_chance_hides_no_larger_one(engine: FakeEngine) -> None:
    """The evidence is the case that every replay shows again, though a smaller one was found."""
    seen = itertools.count()

    def body(probe: Probe, case: Case) -> None:
        if case.request is not None or next(seen) == 0:
            probe.fail("this", "always" if case.request is not None else "once")

    large = Case(v1.GenerateRequest(model="m"))
    check = make_check(body, table=(large,), strategy=st.just(Case()))
    with probe_for(engine, check) as probe:
        result = execute(check, requirement(), probe, BUDGET, 1)
    assert result.judgement.status is Status.FAIL
    assert result.failure is not None
    assert (result.failure.actual, result.failure.case) == ("always", large)


def test_shrinking_ends_with_its_budget(engine: FakeEngine) -> None:
    """After the first failure at most shrink_requests more calls are made, besides replays."""
    calls = itertools.count()

    def body(probe: Probe, case: Case) -> None:
        next(calls)
        probe.call("Control/GetServerInfo", v1.GetServerInfoRequest())
        if case.params["words"]:
            probe.fail("no word", "some")

    words = st.lists(st.text(), min_size=0, max_size=200)
    strategy = words.map(lambda value: Case(params={"words": value}))
    check = make_check(body, table=None, strategy=strategy)
    with probe_for(engine, check) as probe:
        result = execute(check, requirement(), probe, BUDGET, 3)
    assert result.judgement.status is Status.FAIL
    most = BUDGET.examples + BUDGET.shrink_requests + BUDGET.replays
    assert next(calls) <= most


def test_requests_and_tokens_bound_the_search(engine: FakeEngine) -> None:
    """The search ends once the budget is spent, and what was judged stands."""
    request = v1.GenerateRequest(request_id=FRESH_ID, model="fake-model", prompt="a")
    request.stopping.max_tokens = 8

    def body(probe: Probe, case: Case) -> None:
        probe.generate(case)

    drawn = st.integers().map(lambda number: Case(request, params={"number": number}))
    check = make_check(body, table=None, strategy=drawn)
    with probe_for(engine, check) as probe:
        probe.spending.max_tokens = 20
        result = execute(check, requirement(), probe, BUDGET, 1)
    assert result.judgement.status is Status.PASS
    assert result.judgement.requests < BUDGET.examples
    assert result.judgement.tokens >= 20


def test_a_law_broken_in_another_checks_call_is_kept() -> None:
    """The breach is held against the law's own requirement, with the call that shows it."""

    def without_usage(_: v1.GenerateRequest, stream: Stream) -> Stream:
        for message in stream:
            message.ClearField("usage")
            yield message

    request = v1.GenerateRequest(request_id=FRESH_ID, model="fake-model", prompt="a")
    request.stopping.max_tokens = 2
    check = make_check(
        lambda probe, case: probe.skip(str(probe.generate(case))), table=[Case(request)]
    )
    with FakeEngine(Behaviour(spoil=without_usage)) as engine, probe_for(engine, check) as probe:
        result = execute(check, requirement(), probe, BUDGET, 1)
    seen = {failure.requirement: failure for failure in result.bystanders}
    assert set(seen) == {"OE-CORE-USE-001"}
    assert seen["OE-CORE-USE-001"].check == check.requirement
    assert seen["OE-CORE-USE-001"].transcript is not None


def test_calls_left_running_are_ended(engine: FakeEngine) -> None:
    """A check that returns while its stream runs leaves nothing behind on the engine."""
    request = v1.GenerateRequest(request_id=FRESH_ID, model="fake-model", prompt="a")
    request.stopping.max_tokens = 200
    request.stopping.ignore_eos = True

    def body(probe: Probe, case: Case) -> None:
        assert probe.start_generate(case).wait_event(1, timeout=10)

    check = make_check(body, table=[Case(request)])
    with probe_for(engine, check) as probe:
        assert execute(check, requirement(), probe, BUDGET, 1).judgement.status is Status.PASS
        assert probe.wait_until(lambda: not engine.active, 10)


def test_unreachable_is_told_from_a_refusal(engine: FakeEngine) -> None:
    """A refusal is an answer; only a failed connection raises."""
    check = make_check(holds)
    with probe_for(engine, check) as probe:
        assert probe.call("Control/GetModelInfo", v1.GetModelInfoRequest()).rejected
        engine.__exit__(None, None, None)
        with pytest.raises(UnreachableError, match="connection lost"):
            probe.call("Control/GetServerInfo", v1.GetServerInfoRequest())
