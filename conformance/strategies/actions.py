"""Histories of a few requests that are started, aborted and cancelled in any order, as data.

An action is a list: its name, then its slot where it has one. Slots stand for request ids. What an
action means depends on the slot: `start` on a running one sends a duplicate, `abort` on a free one
aborts a request that has ended, or that never was.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.model.case import Case

Action = list[Any]

# Few, so that drawn actions meet.
SLOTS = 3
# What may happen to an id once a request runs under it: it is sent again, briefly or for long (a
# duplicate, or a successor), and ended, by two calls at once or by its client.
ON_A_SLOT = ("start", "abort", "short", "abort_twice", "cancel")
_LIFE = st.lists(st.sampled_from(ON_A_SLOT), min_size=2, max_size=4).map(
    lambda rest: ["start", *rest]
)
# How often it is a slot's turn, against each action that is about none.
_TURNS = 4


def actions(*, alone: bool) -> st.SearchStrategy[list[Action]]:
    """Lists of actions: for each slot some in order, put together by turns that are drawn as well.

    alone: whether nobody else uses the engine, so that everything may be aborted and the load
    looked at.
    """
    whole: tuple[str, ...] = ("health", "load", "abort_all") if alone else ("health",)
    turns = st.sampled_from((*tuple(range(SLOTS)) * _TURNS, *whole))
    lives = st.lists(_LIFE, min_size=SLOTS, max_size=SLOTS)
    return st.builds(_merged, lives, st.lists(turns, min_size=3, max_size=4 * SLOTS))


def _merged(lives: list[list[str]], turns: list[int | str]) -> list[Action]:
    """The next action of a slot at each of its turns; those that had no turn follow."""
    left = [list(life) for life in lives]
    merged: list[Action] = []
    for turn in turns:
        if isinstance(turn, str):
            merged.append([turn])
        elif left[turn]:
            merged.append([left[turn].pop(0), turn])
    for slot, rest in enumerate(left):
        merged += [[name, slot] for name in rest]
    return merged


def histories(*, alone: bool) -> st.SearchStrategy[Case]:
    """Cases that hold such a list."""
    return actions(alone=alone).map(lambda drawn: Case(params={"actions": drawn}))
