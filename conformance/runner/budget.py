"""How much a run may ask of a target, counted in requests and tokens, the units that cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits for each check, so that a verdict never depends on what other checks spent.

    examples: cases that Hypothesis draws after the table. requests, tokens: most that a check may
    cost before its search ends. shrink_requests: calls spent on making a failing case smaller.
    replays: how often a failure is sent again before it is believed. table: the most cases of a
    check's table, None = all of them, which every verdict about an engine needs. restarts: whether
    the hooks that stop and restart the target are used; loading a model may take minutes.
    """

    name: str
    examples: int
    requests: int
    tokens: int
    shrink_requests: int
    replays: int
    table: int | None = None
    restarts: bool = True


BUDGETS: Mapping[str, Budget] = {
    budget.name: budget
    for budget in (
        Budget("quick", 3, 200, 20_000, 30, 3, restarts=False),
        Budget("standard", 20, 600, 60_000, 60, 4),
        Budget("thorough", 120, 4_000, 400_000, 150, 6),
    )
}
