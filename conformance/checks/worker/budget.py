"""The budget: one time from the headers to the answer, whatever uses it up."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.checks.http.check import http_check, params
from conformance.checks.http.probe import HttpProbe
from conformance.checks.worker.calls import (
    SHORT_SECONDS,
    SLACK_SECONDS,
    budget_headers,
    granted,
    must_be,
    padded,
    raw,
    start,
    terms_of,
    work,
)
from conformance.checks.worker.stage import asked, staged
from conformance.http.exchange import Exchange
from conformance.http.raw import Pause, Step
from conformance.model.case import Case
from conformance.runtimes.declared import HttpDeclared

# Longer than this no check waits for a budget that its caller cannot lower.
LONGEST_SECONDS = 60.0
_DRIPS = 24
# What each state must answer: 503 when no work can be taken, 504 when the time is used up.
STATES = {
    "ready": 200,
    "busy": 503,
    "unavailable": 503,
    "starting": 503,
    "failed": 503,
    "hold": 504,
    "upload": 504,
}
# What can be shown of a worker that is only what it is.
UNSTAGED = frozenset({"ready", "upload"})


def _affordable(probe: HttpProbe, seconds: float) -> float:
    budget = granted(probe, seconds)
    if budget > LONGEST_SECONDS:
        probe.skip(f"a budget of {budget:.0f} s is too long to wait for", too_large=True)
    return budget


def _in_time(probe: HttpProbe, seen: Exchange, budget: float, when: str) -> None:
    """A 504 that came when the budget ended: not before, and not long after."""
    must_be(probe, seen, 504, when)
    waited = seen.headers_seconds or 0.0
    if waited < budget:
        probe.fail(f"504 not before the budget of {budget:g} s ends", "an earlier one", seen)
    if waited > budget + probe.seconds(SLACK_SECONDS):
        probe.fail(f"504 when the budget of {budget:g} s ends", "a much later one", seen)


def _late_upload(probe: HttpProbe, budget: float) -> Exchange:
    """A request whose last bytes come one by one, for three times as long as the budget."""
    data = padded(probe, len(terms_of(probe).request.encode()) + _DRIPS)
    head, tail = data[:-_DRIPS], data[-_DRIPS:]
    steps: list[Step] = [head]
    for byte in tail:
        steps += (Pause(budget / 8), bytes([byte]))
    length = ("content-length", str(len(data)))
    return raw(probe, (length, *budget_headers(probe, budget)), steps)


@http_check(
    "OE-WORK-004",
    advice="Start the clock when the headers have arrived, and read the body under the same "
    "deadline as everything after it.",
    waits=1.0,
)
def slow_upload(probe: HttpProbe, _: Case) -> None:
    """A body that takes too long is 504, and never reaches the worker."""
    budget = _affordable(probe, SHORT_SECONDS)
    before = asked(probe)
    seen = _late_upload(probe, budget)
    must_be(probe, seen, 504, "for an upload that outlasts the budget")
    if asked(probe) != before:
        probe.fail("no request for the worker after the budget", "it was asked", seen)


@http_check(
    "OE-WORK-005",
    advice="Wait for the worker until the deadline and no longer; the answer is then 504.",
    waits=1.0,
)
def silent_worker(probe: HttpProbe, _: Case) -> None:
    """A worker that never answers is cut off at the end of the budget."""
    budget = _affordable(probe, SHORT_SECONDS)
    with staged(probe, work="hold"):
        _in_time(probe, work(probe, budget=budget), budget, "for work that is never answered")


@http_check(
    "OE-WORK-006",
    advice="The deadline is absolute: time in the queue uses it up, and its end is 504. 503 is for "
    "a worker that cannot take work.",
    waits=1.0,
)
def queued(probe: HttpProbe, _: Case) -> None:
    """A request that waits in the queue until its budget ends is 504."""
    budget = _affordable(probe, SHORT_SECONDS)
    with staged(probe, work="hold") as staging:
        first = start(probe)
        if not staging.holds(1):
            probe.finish(first)
            probe.skip("the worker did not take the first request")
        seen = work(probe, budget=budget)
        staging.set(work="echo", release=True)
        probe.finish(first)
        _in_time(probe, seen, budget, "for work whose budget ends in the queue")


@http_check(
    "OE-WORK-015",
    advice="Compute the deadline once, when the headers have arrived, and hand that deadline to "
    "the worker. Look at it again before handing over: what is used up is answered with 504.",
    table=params({"kind": "given"}, {"kind": "used up"}),
    waits=1.0,
)
def deadline(probe: HttpProbe, case: Case) -> None:
    """The worker's deadline is counted from the headers."""
    if case.params["kind"] == "used up":
        _used_up(probe)
        return
    budget = _affordable(probe, 2.0)
    upload = budget / 2
    with staged(probe, work="echo") as staging:
        left = 0.0
        for _turn in range(3):
            data = terms_of(probe).request.encode()
            length = ("content-length", str(len(data)))
            steps: tuple[Step, ...] = (data[:1], Pause(upload), data[1:])
            seen = raw(probe, (length, *budget_headers(probe, budget)), steps)
            remaining = staging.counts().remaining_ms
            if seen.status != 200 or remaining is None:
                probe.skip("a slow upload within the budget was not answered")
            left = remaining / 1000
            # A server that was busy may have seen the headers late; three times it was not.
            if left <= budget - upload / 2:
                return
        probe.fail(
            f"at most {budget - upload:g} s left of {budget:g} s after an upload of {upload:g} s",
            f"{left:.1f} s left",
            seen,
        )


def _used_up(probe: HttpProbe) -> None:
    if not terms_of(probe).budget_header:
        probe.skip("callers cannot lower the budget of this target")
    before = asked(probe)
    seen = work(probe, budget=0.0)
    must_be(probe, seen, 504, "for a budget of nothing")
    if asked(probe) != before:
        probe.fail("no request for the worker after the budget", "it was asked", seen)


def _schedules(declared: HttpDeclared) -> SearchStrategy[Case]:
    staged = declared.worker is not None and declared.worker.stage_path
    states = sorted(STATES if staged else UNSTAGED)
    steps = st.lists(st.sampled_from(states), min_size=2, max_size=4)
    return steps.map(lambda states: Case(params={"states": states}))


@http_check(
    "OE-WORK-016",
    advice="Decide the status by what happened to this request alone: the deadline passed (504), "
    "or the worker could not take it (503). Nothing of earlier requests may be left.",
    table=params(
        {"states": ["busy", "hold", "busy"]},
        {"states": ["upload", "ready", "upload"]},
        {"states": ["starting", "hold", "unavailable", "upload", "failed", "ready"]},
    ),
    strategy=_schedules,
    waits=1.0,
)
def never_swapped(probe: HttpProbe, case: Case) -> None:
    """503 and 504 keep their meaning in any order of states."""
    budget = _affordable(probe, SHORT_SECONDS)
    for state in case.params["states"]:
        must_be(probe, _in_state(probe, state, budget), STATES[state], f"in the state {state}")


def _in_state(probe: HttpProbe, state: str, budget: float) -> Exchange:
    match state:
        case "ready":
            return work(probe)
        case "upload":
            return _late_upload(probe, budget)
        case "starting" | "failed":
            stage = {"readiness": state, "reason": "as staged"}
        case _:
            stage = {"work": state}
    with staged(probe, **stage):
        # Only what is to end by its budget has a short one: a loaded machine is no reason for 504.
        return work(probe, budget=budget if state == "hold" else None)
