"""Whether a worker takes work: starting, ready, failed, and a change while it works."""

from __future__ import annotations

from conformance.checks.http.check import http_check
from conformance.checks.http.probe import HttpProbe
from conformance.checks.worker.calls import (
    COUNTERS,
    UNAVAILABLE,
    health,
    must_be,
    start,
    work,
)
from conformance.checks.worker.stage import Staging, staged
from conformance.http.exchange import Exchange
from conformance.model.case import Case

_WATCH_SECONDS = 0.3
REASON = 'weights: "layer 3"\n\tare missing \u2028 \\ é'


def _refuses(probe: HttpProbe, staging: Staging, when: str) -> None:
    before = staging.counts().asked
    must_be(probe, work(probe), 503, when, UNAVAILABLE)
    if staging.counts().asked != before:
        probe.fail(f"no request for the worker {when}", "it was asked")


def _not_ready(probe: HttpProbe, status: str) -> Exchange:
    seen = health(probe)
    must_be(probe, seen, 503, f"from the health route of a worker that is {status}")
    found = seen.json
    if not isinstance(found, dict) or found.get("status") != status:
        probe.fail(f'the status "{status}"', "another body", seen)
    shown = [name for name in COUNTERS if name in found]
    if shown:
        probe.fail("no counters unless the worker is ready", ", ".join(shown), seen)
    return seen


@http_check(
    "OE-WORK-001",
    advice="Ask the worker whether it is ready before anything is handed to it, and answer 503 "
    'with {"error": "model unavailable"} while it is not.',
)
def starting(probe: HttpProbe, _: Case) -> None:
    """A worker that is starting gets no work."""
    with staged(probe, readiness="starting") as staging:
        _not_ready(probe, "starting")
        _refuses(probe, staging, "while the worker is starting")


@http_check(
    "OE-WORK-002",
    advice="A failed worker keeps its process: answer work with 503, and the health route with "
    "503, the status failed and the worker's own reason, escaped as JSON and otherwise unchanged.",
)
def failed(probe: HttpProbe, _: Case) -> None:
    """A worker that has failed says why, again and again."""
    with staged(probe, readiness="failed", reason=REASON) as staging:
        for _turn in range(2):
            seen = _not_ready(probe, "failed")
            if seen.json.get("reason") != REASON:
                probe.fail("the reason word for word", "another reason, or none", seen)
            _refuses(probe, staging, "after the worker has failed")


@http_check(
    "OE-WORK-003",
    advice="A ready worker's answer is 200 with the content type application/json. If `request` "
    "in the target's [worker] table is not a body that this worker answers, state one.",
)
def ready(probe: HttpProbe, _: Case) -> None:
    """A ready worker says so and answers."""
    seen = health(probe)
    must_be(probe, seen, 200, "from the health route of a ready worker")
    found = seen.json
    if not isinstance(found, dict) or found.get("status") != "ok":
        probe.fail('the status "ok"', "another body", seen)
    for name in COUNTERS:
        if name in found and (type(found[name]) is not int or found[name] < 0):
            probe.fail(f"{name} as a number of at least 0", "something else", seen)
    answer = work(probe)
    must_be(probe, answer, 200, "for the request of the target's file")
    if answer.media_type != "application/json":
        probe.fail("the content type application/json", answer.media_type or "none", answer)


@http_check(
    "OE-WORK-018",
    advice="Readiness decides about new requests only: a request that the worker has taken is "
    "awaited to its outcome.",
)
def taken(probe: HttpProbe, _: Case) -> None:
    """Work that has been taken outlives the readiness."""
    with staged(probe, work="hold") as staging:
        running = start(probe)
        if not staging.holds(1):
            probe.finish(running)
            probe.skip("the worker did not take the request")
        staging.set(work="hold", readiness="starting")
        _not_ready(probe, "starting")
        # Long enough for a transport that looks at the readiness now and then.
        probe.wait_until(lambda: running.ended, _WATCH_SECONDS)
        staging.set(work="echo", readiness="starting", release=True)
        seen = probe.finish(running)
        must_be(probe, seen, 200, "for work that was taken before the worker stopped being ready")
