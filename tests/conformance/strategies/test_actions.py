"""Drawn histories are data: they survive storage, and they hold the meetings they are for."""

from __future__ import annotations

import json

from hypothesis import given, settings

from conformance.model.case import Case, from_json, to_json
from conformance.strategies.actions import SLOTS, Action, actions, histories


def meets(history: list[Action], *names: str) -> bool:
    """Whether these actions happen to one slot in this order."""
    for slot in range(SLOTS):
        left = list(names)
        for action in history:
            if left and action == [left[0], slot]:
                left.pop(0)
        if not left:
            return True
    return False


@settings(max_examples=50, database=None, derandomize=True)
@given(histories(alone=True))
def test_histories_survive_storage(case: Case) -> None:
    """A stored history is the same list of actions."""
    stored = json.loads(json.dumps(to_json(case)))
    assert from_json(stored).params == case.params


def test_twelve_histories_hold_the_meetings() -> None:
    """A duplicate before an Abort, and a successor after one: what the mutants' budget draws."""
    drawn: list[list[Action]] = []

    @settings(max_examples=12, database=None, derandomize=True)
    @given(actions(alone=False))
    def draw(history: list[Action]) -> None:
        drawn.append(history)

    draw()
    assert any(meets(history, "start", "start", "abort") for history in drawn)
    assert any(meets(history, "start", "abort", "start") for history in drawn)


@settings(max_examples=50, database=None, derandomize=True)
@given(actions(alone=False))
def test_shared_histories_touch_nobody_else(history: list[Action]) -> None:
    """Without the engine for itself a history aborts no foreign request and judges no load."""
    assert {action[0] for action in history}.isdisjoint({"load", "abort_all"})
