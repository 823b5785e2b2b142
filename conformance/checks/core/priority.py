"""Whether a higher priority is scheduled first (META-010)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.probe import Probe, describe
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.oracle.metadata import PRIORITY
from conformance.strategies import simple_request
from conformance.strategies.simple import LONG_TOKENS, long_request
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Transcript
from oe_wire import v1

# The row's own measure: a higher priority starts first in at least 8 of 10 pairs.
PAIRS = 10
ENOUGH = 8
LOW, HIGH = "-1", "1"
# More sequences than this are not kept running only to see a queue.
MAX_RUNNING = 256
# Requests that keep an engine full at the same time; each is a thread here.
MAX_BLOCKERS = 32
# Tokens of the queued requests: one after another they start so far apart. Where a busy client may
# have seen them in another order than that of the engine, longer ones tell.
QUEUED_TOKENS = (1, 8)
# Tokens after which a queue that is no queue would have moved on.
QUEUE_STEPS = 8


@dataclass(frozen=True, slots=True)
class Queued:
    """A request that waits for a place, and when it was sent (monotonic seconds)."""

    live: LiveCall
    sent: float

    @property
    def begun(self) -> float:
        """When its first event arrived, by the clock of `sent`; endless without one."""
        events = self.live.events
        return self.sent + events[0].seconds if events else math.inf


def _saturating(declared: Declared) -> Iterable[Case]:
    """One long request to fill the engine with, as often as it takes; empty when that is much."""
    engine = declared.engine
    running = engine.capacity.max_running_requests if isinstance(engine, v1.EngineInfo) else 0
    width = declared.max_num_sequences
    blockers = -(-(running - 1) // width)
    if not 1 < running <= MAX_RUNNING or blockers >= MAX_BLOCKERS:
        yield Case()
        return
    request = long_request(declared, LONG_TOKENS, width)
    yield Case(request, params={"blockers": blockers, "rest": (running - 1) % width or width})


@check(
    "OE-CORE-META-010",
    advice="Sort the waiting queue by priority, the highest first, and by age among equals.",
    table=_saturating,
)
def higher_first(probe: Probe, case: Case) -> None:
    """Of requests that wait for a place, those of the higher priority start first.

    The engine is filled but for one place, that one is filled by a request of its own, and ten
    requests of each priority are queued, the low ones first. Then the one place is freed.
    """
    if case.request is None:
        probe.skip("the capacity is unreported or costly to fill", too_large=True)
    _fill(probe, case)
    for tokens in QUEUED_TOKENS:
        first, calls = _started_first(probe, tokens)
        if first >= ENOUGH:
            return
    probe.fail(f"the higher priority first in {ENOUGH} of {PAIRS} pairs", f"{first}", calls[0])


def _fill(probe: Probe, case: Case) -> None:
    """Fill the engine but for one place; all have begun, else skip."""
    request = probe.prepared(case)
    number = case.params["blockers"]
    running = []
    for index in range(number):
        request.request_id = probe.fresh_id()
        if index == number - 1:
            request.sampling.num_sequences = case.params["rest"]
        running.append(probe.start(GENERATE, request))
    if not all(_begins(probe, live) for live in running):
        probe.skip("the engine does not take as many requests as it reports", too_large=True)


def _started_first(probe: Probe, tokens: int) -> tuple[int, Sequence[Transcript]]:
    """In how many pairs of requests for `tokens` tokens the higher priority starts first, and the
    calls of both.
    """
    last = probe.start_generate(Case(long_request(probe.declared)))
    if not _begins(probe, last):
        probe.skip("the engine does not take as many requests as it reports", too_large=True)
    low = _queue(probe, LOW, tokens)
    high = _queue(probe, HIGH, tokens)
    if not _all_wait(probe, (*low, *high)):
        probe.skip("the engine is not full at the capacity it reports", too_large=True)
    last.cancel()
    limit = probe.pace.generate_limit(2 * PAIRS * tokens)
    for queued in (*high, *low):
        queued.live.wait_event(1, timeout=limit)
    first = sum(more.begun < less.begun for more, less in zip(high, low, strict=True))
    calls = [probe.finish(queued.live) for queued in (*high, *low)]
    for call in calls:
        if not call.events:
            probe.skip(f"a queued request brought no event: {describe(call)}")
    return first, calls


def _begins(probe: Probe, live: LiveCall) -> bool:
    return live.wait_event(1, timeout=probe.pace.generate_limit(1))


def _queue(probe: Probe, priority: str, tokens: int) -> Sequence[Queued]:
    """Start requests of a priority for so many tokens."""
    request = simple_request(probe.declared, max_tokens=tokens)
    request.stopping.ignore_eos = True
    case = Case(request, ((PRIORITY, priority),))
    return [Queued(probe.start_generate(case), time.monotonic()) for _ in range(PAIRS)]


def _all_wait(probe: Probe, waiting: Sequence[Queued]) -> bool:
    """Whether the engine has all of them, and has begun none."""
    limit = 1.0 + probe.pace.first_token + QUEUE_STEPS * probe.pace.per_token

    def known() -> bool:
        info = steering.load(probe)
        return info is not None and info.queued_requests >= len(waiting)

    probe.wait_until(known, limit)
    return not any(queued.live.events or queued.live.done for queued in waiting)
