"""Wishes for intervals, drawn around the bounds of different engines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.strategies.watch_load import (
    MOST,
    inside_cases,
    interval_cases,
    outside_cases,
    short_heartbeat_cases,
    wishes,
)
from conformance.wire.declared import Declared, TargetClass
from oe_wire import v1
from tests.conformance.laws.watch import bounds, declared

UNDECLARED = Declared(TargetClass.LEGACY, "v0.1.0")


@settings(max_examples=60, deadline=None, database=None)
@given(st.integers(1, MOST), st.integers(1, MOST))
def test_wishes_are_legal_and_different(one: int, two: int) -> None:
    """Whatever the bounds, each wish fits the wire and is made once, and both bounds are among
    them.
    """
    floor, ceiling = sorted((one, two))
    made = wishes(floor, ceiling)
    assert len(set(made)) == len(made)
    assert {None, 0, floor, ceiling} <= set(made)
    assert all(wish is None or 0 <= wish <= MOST for wish in made)


def test_outside_needs_room_outside() -> None:
    """Nothing is below a floor of 1 or above the largest number."""
    assert len(list(outside_cases(declared()))) == 4
    limits = bounds()
    limits.min_interval_floor_ms = limits.heartbeat_floor_ms = 1
    limits.min_interval_ceiling_ms = limits.heartbeat_ceiling_ms = MOST
    assert not list(outside_cases(declared(limits)))


@pytest.mark.parametrize("table", [inside_cases, outside_cases, short_heartbeat_cases])
def test_nothing_declared_nothing_asked(table: object) -> None:
    """Without bounds there is no case with certain outcome."""
    assert callable(table)
    assert not list(table(UNDECLARED))


@settings(max_examples=30, deadline=None, database=None)
@given(st.data())
def test_drawn_cases_are_requests(data: st.DataObject) -> None:
    """Each is a WatchLoadRequest that goes over the wire; without bounds there is none."""
    case = data.draw(interval_cases(declared()))
    assert isinstance(case.request, v1.WatchLoadRequest)
    assert v1.WatchLoadRequest.FromString(case.request.SerializeToString()) == case.request
    assert data.draw(interval_cases(UNDECLARED)).request is None
