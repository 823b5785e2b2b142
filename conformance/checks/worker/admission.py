"""The queue in front of a worker: refusals, counters, and callers who leave."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from conformance.checks.http.check import http_check, params
from conformance.checks.http.probe import HttpProbe
from conformance.checks.worker.calls import (
    FULL,
    counters,
    measured,
    must_be,
    said,
    start,
    terms_of,
    work,
)
from conformance.checks.worker.stage import Staging, staged
from conformance.http.client import LiveExchange
from conformance.model.case import Case

# Connections that a check opens to fill a queue.
MOST_CAPACITY = 16
# Within which a place is free again after its request is over.
RELEASE_SECONDS = 5.0
_NOTICE_SECONDS = 0.5


@contextmanager
def _filled(probe: HttpProbe, staging: Staging) -> Iterator[dict[str, int]]:
    """The queue holds as many requests as it admits while the block runs, and answers them after
    it; yields the counters that it had when it was empty.
    """
    empty = measured(probe)
    room = empty["capacity"] - empty["depth"]
    if room > MOST_CAPACITY:
        probe.skip(f"a queue for {room} requests is too long to be filled", too_large=True)
    running = [start(probe) for _ in range(room)]
    try:
        _wait_depth(probe, empty["capacity"])
        yield empty
    finally:
        staging.set(work="echo", release=True)
        answers = [probe.finish(live) for live in running]
    for answer in answers:
        if answer.status != 200:
            probe.skip(f"an accepted request was not answered: {said(answer)}")


def _wait_depth(probe: HttpProbe, depth: int) -> None:
    if not probe.wait_until(lambda: counters(probe).get("depth") == depth, _patience(probe)):
        probe.skip(f"the queue did not come to a depth of {depth}")


def _patience(probe: HttpProbe) -> float:
    return probe.seconds(RELEASE_SECONDS)


@http_check(
    "OE-WORK-007",
    advice="When the worker says that it is full, say so at once: the caller decides whether to "
    "try again, the transport never does.",
)
def busy(probe: HttpProbe, _: Case) -> None:
    """A full worker is asked once, and its refusal passed on at once."""
    with staged(probe, work="busy") as staging:
        before = staging.counts().asked
        seen = work(probe)
        must_be(probe, seen, 503, "from a worker that is full", FULL)
        times = staging.counts().asked - before
        if times != 1:
            probe.fail("one request to the worker", f"{times}", seen)
        budget = terms_of(probe).budget_seconds
        if budget > _patience(probe) and seen.ending.seconds > budget / 2:
            probe.fail("the refusal at once", "it came after half of the budget", seen)


@http_check(
    "OE-WORK-012",
    advice="Count a refusal in rejected and nowhere else; count an accepted request in depth from "
    "its admission to its end.",
)
def counted(probe: HttpProbe, _: Case) -> None:
    """A refused request is counted once, as rejected."""
    with staged(probe, work="hold") as staging, _filled(probe, staging) as empty:
        before = measured(probe)
        must_be(probe, work(probe), 503, "from a queue that is full", FULL)
        after = measured(probe)
        if after["depth"] != before["depth"]:
            probe.fail("the same depth after a refusal", f"{after['depth'] - before['depth']:+d}")
        if after["rejected"] != before["rejected"] + 1:
            change = after["rejected"] - before["rejected"]
            probe.fail("rejected raised by one", f"{change:+d}")
        if after["depth"] > after["capacity"] or after["capacity"] != empty["capacity"]:
            probe.fail("a depth of at most the capacity", "more")


@http_check(
    "OE-WORK-013",
    advice="Free the place of a request in the same step in which its outcome is known.",
)
def freed(probe: HttpProbe, _: Case) -> None:
    """A queue that was full admits again."""
    with staged(probe, work="hold") as staging:
        with _filled(probe, staging) as empty:
            pass
        if not probe.wait_until(
            lambda: counters(probe).get("depth") == empty["depth"], _patience(probe)
        ):
            probe.fail("the depth of an empty queue after its requests", "a larger one")
        must_be(probe, work(probe), 200, "from a queue with room again")


@http_check(
    "OE-WORK-014",
    table=params({"staged": False}, {"staged": True}),
    advice="A caller who closes his connection ends his request: take it out of the queue, or let "
    "it finish, and count it once either way.",
)
def abandoned(probe: HttpProbe, case: Case) -> None:
    """Callers who leave take their requests with them."""
    before = measured(probe)
    if case.params["staged"]:
        with staged(probe, work="hold") as staging:
            leavers = _two(probe, before)
            _leave(probe, leavers)
            # Most servers notice at once; one that does not is asked for the same in the end.
            seen = before["depth"] + len(leavers)
            probe.wait_until(lambda: counters(probe).get("depth", seen) < seen, _NOTICE_SECONDS)
            staging.set(work="echo", release=True)
            _undisturbed(probe, before)
    else:
        _leave(probe, [start(probe)])
        _undisturbed(probe, before)


def _leave(probe: HttpProbe, leavers: list[LiveExchange]) -> None:
    for live in reversed(leavers):
        live.cancel()
        probe.finish(live)


def _undisturbed(probe: HttpProbe, before: dict[str, int]) -> None:
    must_be(probe, work(probe), 200, "after callers have left")
    if not probe.wait_until(
        lambda: counters(probe).get("depth") == before["depth"], _patience(probe)
    ):
        probe.fail("the depth from before, once their requests are over", "a larger one")
    if measured(probe)["rejected"] < before["rejected"]:
        probe.fail("rejected never falls", "it fell")


def _two(probe: HttpProbe, before: dict[str, int]) -> list[LiveExchange]:
    """A request that is computed and, if there is room, one that waits behind it."""
    number = min(2, before["capacity"] - before["depth"])
    leavers = []
    for index in range(number):
        leavers.append(start(probe))
        _wait_depth(probe, before["depth"] + index + 1)
    return leavers
