from __future__ import annotations

import signal
import threading
from dataclasses import replace

import pytest

from conformance.checks.probe import Probe
from conformance.model.case import FRESH_ID, Case
from conformance.model.status import SkipReason, Status
from conformance.model.verdict import CONFORMANT, NOT_CONFORMANT, NOT_JUDGED, Claim
from conformance.runner.budget import Budget
from conformance.runner.events import CheckFinished, CheckStarted, RunEvent, RunStarted
from conformance.runner.run import run
from conformance.runner.selection import Selection
from oe_wire import v1
from tests.conformance.fake_engine import Behaviour, FakeEngine, Stream
from tests.conformance.runner.build import ROW, make_check, options

LONG = v1.GenerateRequest(request_id=FRESH_ID, model="fake-model", prompt="a")
LONG.stopping.max_tokens = 200
LONG.stopping.ignore_eos = True


STREAMS = Selection(ids=("OE-CORE-STREAM-*", "OE-CORE-USE-*", "OE-CORE-GEN-*"))
FEW = Budget("few", examples=3, requests=60, tokens=8_000, shrink_requests=30, replays=2)


def without_usage(_: v1.GenerateRequest, stream: Stream) -> Stream:
    for message in stream:
        message.ClearField("usage")
        yield message


def test_a_right_engine_is_conformant(engine: FakeEngine) -> None:
    """Exit code 0 and a claim that names what was not checked."""
    report = run(options(engine, budget=FEW, selection=Selection(profiles=("core",))))
    broken = {j.requirement: j.detail for j in report.judgements if j.status in {"fail", "error"}}
    assert broken == {}
    assert report.verdict.exit_code == CONFORMANT
    assert report.verdict.text.startswith("conformant to core 1.0")
    assert report.failures == ()


def test_a_wrong_engine_is_not(engine: FakeEngine) -> None:
    """The broken rows fail, with evidence, and no other does."""
    with FakeEngine(Behaviour(breaks=frozenset({"GEN-016"}))) as wrong:
        report = run(options(wrong, selection=Selection(ids=("OE-CORE-GEN-*",))))
    failed = [j.requirement for j in report.judgements if j.status is Status.FAIL]
    assert failed == ["OE-CORE-GEN-016"]
    assert report.verdict.exit_code == NOT_CONFORMANT
    assert report.failure("OE-CORE-GEN-016") is not None


def test_verdicts_do_not_depend_on_the_number_of_workers() -> None:
    """The same statuses, and the same minimal requests, at one worker and at four."""
    seen = []
    for jobs in (1, 4):
        with FakeEngine(Behaviour(breaks=frozenset({"GEN-017"}), spoil=without_usage)) as wrong:
            report = run(options(wrong, jobs=jobs, budget=FEW, selection=STREAMS))
        seen.append(
            (
                {j.requirement: j.status for j in report.judgements},
                [(f.requirement, f.case.params, f.case.request) for f in report.failures],
            )
        )
    assert seen[0] == seen[1]
    assert seen[0][0]["OE-CORE-USE-001"] is Status.FAIL


def test_a_law_is_turned_by_another_checks_call() -> None:
    """A law whose own check passes still fails for a breach in a bystander's call, replayed."""
    quiet = make_check(lambda probe, case: None, requirement="OE-CORE-USE-001")
    request = v1.GenerateRequest(request_id=FRESH_ID, model="fake-model", prompt="a")
    request.stopping.max_tokens = 2

    def calls(probe: Probe, case: Case) -> None:
        probe.generate(case)

    loud = make_check(calls, requirement="OE-CORE-GEN-001", table=[Case(request)])
    checks = {check.requirement: check for check in (quiet, loud)}
    with FakeEngine(Behaviour(spoil=without_usage)) as wrong:
        report = run(options(wrong), checks=checks)
    failure = report.failure("OE-CORE-USE-001")
    assert failure is not None
    assert (failure.check, failure.reproduced) == ("OE-CORE-GEN-001", 3)
    status = {j.requirement: j.status for j in report.judgements}
    assert status["OE-CORE-USE-001"] is Status.FAIL
    assert status["OE-CORE-GEN-001"] is Status.PASS


def test_nothing_executed_is_not_green(engine: FakeEngine) -> None:
    """A run in which every row was left out could not judge anything."""
    report = run(options(engine, selection=Selection(profiles=("scheduling_load",))))
    assert report.verdict.exit_code == NOT_JUDGED


def test_an_operators_exclusion_is_partial(engine: FakeEngine) -> None:
    """What ran holds, so the exit code is 0, but nothing may be claimed."""
    report = run(options(engine, budget=FEW, selection=Selection(excluded=("OE-CORE-GEN-001",))))
    assert (report.verdict.claim, report.verdict.exit_code) == (Claim.PARTIAL, CONFORMANT)


def test_events_tell_the_whole_run(engine: FakeEngine) -> None:
    """First the plan, then a start and an end for each check of it."""
    events: list[RunEvent] = []
    selection = Selection(ids=("OE-CORE-GEN-01?",))
    report = run(options(engine, jobs=3, selection=selection), events.append)
    assert isinstance(events[0], RunStarted)
    started = {event.requirement for event in events if isinstance(event, CheckStarted)}
    ended = {
        event.result.judgement.requirement for event in events if isinstance(event, CheckFinished)
    }
    assert started == ended == {row.requirement.id for row in report.plan.to_run}


def test_checks_that_wait_hold_up_nobody(engine: FakeEngine) -> None:
    """Beside several jobs they take none of them: as many others as jobs run meanwhile."""
    others = threading.Barrier(3)

    def body(probe: Probe, case: Case) -> None:
        others.wait(30)

    rows = ("OE-CORE-GEN-001", "OE-CORE-GEN-005", "OE-CORE-GEN-006")
    checks = {row: make_check(body, requirement=row) for row in rows}
    checks[rows[0]] = replace(checks[rows[0]], waits=1.0)
    report = run(options(engine, jobs=2, selection=Selection(ids=rows)), checks=checks)
    ran = {each.requirement: each.status for each in report.judgements if each.requirement in rows}
    assert ran == dict.fromkeys(rows, Status.PASS)


@pytest.mark.parametrize("reason", [SkipReason.INTERRUPTED, SkipReason.TIME_LIMIT])
def test_a_run_that_ends_early_is_partial_and_leaves_nothing_running(
    engine: FakeEngine, reason: SkipReason
) -> None:
    """Ctrl-C and the time limit: exit code 2, rows not run say why, streams are cancelled."""
    running = threading.Event()

    def body(probe: Probe, case: Case) -> None:
        live = probe.start_generate(case)
        live.wait_event(1, timeout=10)
        running.set()
        if reason is SkipReason.INTERRUPTED:
            # The system may give a signal to any thread of a process, not only to the main one.
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        probe.finish(live)

    checks = {
        name: make_check(body, requirement=name, table=[Case(LONG)])
        for name in ("OE-CORE-GEN-001", "OE-CORE-GEN-002", "OE-CORE-GEN-005")
    }
    limit = None if reason is SkipReason.INTERRUPTED else 0.5
    report = run(options(engine, jobs=2, time_limit=limit), checks=checks)
    assert running.is_set()
    assert report.ended_early == reason
    assert report.verdict.exit_code == NOT_JUDGED
    rows = {j.requirement: j for j in report.judgements if j.requirement in checks}
    assert {(row.status, row.reason) for row in rows.values()} == {(Status.ERROR, reason)}
    freed = threading.Event()
    for _ in range(200):
        if not engine.active:
            break
        freed.wait(0.05)
    assert engine.active == {}


def test_ctrl_c_while_workers_start_ends_those_that_have(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report comes after their checks have ended, not beside them."""
    running, ended = threading.Event(), threading.Event()

    def body(probe: Probe, case: Case) -> None:
        running.set()
        try:
            probe.generate(case)
        finally:
            ended.set()

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        if thread.name.startswith("check"):
            running.wait(10)
            raise KeyboardInterrupt

    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    report = run(options(engine), checks={ROW: make_check(body, table=[Case(LONG)])})
    assert report.ended_early == SkipReason.INTERRUPTED
    assert ended.is_set()


def test_a_crash_of_a_listener_is_not_swallowed(engine: FakeEngine) -> None:
    """A report writer that fails ends the run with its own error."""

    def broken(event: RunEvent) -> None:
        match event:
            case CheckFinished():
                raise RuntimeError("disk full")
            case _:
                return

    with pytest.raises(RuntimeError, match="disk full"):
        run(options(engine, jobs=2), broken)
