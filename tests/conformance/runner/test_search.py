from __future__ import annotations

from hypothesis import strategies as st

from conformance.checks.base import Spending
from conformance.model.case import Case
from conformance.runner.budget import BUDGETS
from conformance.runner.search import prepare, search

NUMBERS = st.lists(st.integers(), max_size=9).map(lambda drawn: Case(params={"drawn": drawn}))


def drawn(seed: int) -> list[object]:
    """What a search gives out."""
    seen: list[object] = []
    search(
        lambda case: seen.append(case.params["drawn"]),
        NUMBERS,
        budget=BUDGETS["standard"],
        seed=seed,
        spending=Spending(100, 100),
    )
    return seen


def test_a_seed_draws_the_same_cases_after_preparing_again() -> None:
    """A run that was prepared and one that was not repeat each other."""
    prepare()
    first = drawn(7)
    prepare()
    assert drawn(7) == first
    assert drawn(8) != first
