"""Drives Hypothesis over a check's cases with every setting explicit and its cost bounded."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st
from hypothesis.errors import Flaky, Unsatisfiable
from hypothesis.reporting import with_reporter
from hypothesis.strategies import SearchStrategy

from conformance.checks.base import Spending
from conformance.checks.violation import Tolerated, Violation
from conformance.model.case import Case
from conformance.runner.budget import BUDGETS, Budget

# Explain is left out: it costs about four times the calls of shrinking and says nothing that a
# minimal request does not.
PHASES = (Phase.explicit, Phase.generate, Phase.shrink)
# Calls that only end at their deadline would make 60 of them take half an hour. How small a
# failing case gets may depend on this; whether it fails does not.
SHRINK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Found:
    """A failing case and how it failed."""

    case: Case
    violation: Violation


@dataclass(frozen=True, slots=True)
class _Limit:
    requests: int
    moment: float

    def reached(self, spending: Spending) -> bool:
        return spending.requests >= self.requests or time.monotonic() >= self.moment


class _Enough(BaseException):
    """Ends a search at once. Not an Exception: Hypothesis would take one for a failing example."""


def seed_of(run_seed: int, requirement: str) -> int:
    """The seed of one check: the same for any order of checks and any number of workers."""
    digest = hashlib.sha256(f"{run_seed}:{requirement}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def prepare() -> None:
    """Search once for nothing, after every check was imported: the first search of a process costs
    up to a second more than others, in which Hypothesis looks for constants in what was imported.
    """
    # It looks when it is about to draw one, which is one integer in twenty.
    numbers = st.lists(st.integers(), min_size=100, max_size=100)
    cases = st.builds(lambda drawn: Case(params={"numbers": drawn}), numbers)
    search(lambda _: None, cases, budget=BUDGETS["quick"], seed=0, spending=Spending(1, 1))


def search(
    attempt: Callable[[Case], None],
    strategy: SearchStrategy[Case],
    *,
    budget: Budget,
    seed: int,
    spending: Spending,
) -> Found | None:
    """The smallest failing case found within the budget, or None.

    `attempt` raises Violation for a failing case. The last failing case is kept rather than the
    one Hypothesis replays at its end, which would cost one more call for nothing.
    """
    found: list[Found] = []
    shrink_until = _Limit(0, 0.0)

    def body(case: Case) -> None:
        nonlocal shrink_until
        if spending.exhausted or (found and shrink_until.reached(spending)):
            raise _Enough
        try:
            attempt(case)
        except Violation as violation:
            if not found:
                shrink_until = _Limit(
                    spending.requests + budget.shrink_requests, time.monotonic() + SHRINK_SECONDS
                )
            if not (found and isinstance(violation, Tolerated) and not _tolerated(found[-1])):
                found.append(Found(case, violation))
            raise

    run = settings(
        max_examples=budget.examples,
        phases=PHASES,
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )(with_seed(seed)(given(strategy)(body)))
    # Flaky: the first failure did not show again. Replays decide what that is worth.
    with with_reporter(_silent), suppress(_Enough, Violation, Flaky, Unsatisfiable):
        run()
    return found[-1] if found else None


def _tolerated(found: Found) -> bool:
    return isinstance(found.violation, Tolerated)


def _silent(_: object) -> None:
    """Hypothesis would print its own account of failures; reports tell them better."""
