"""WatchLoadRequests: wishes for intervals around the declared bounds, and the cheapest stream."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.laws.load_stream import bounds_of
from conformance.model.case import Case
from conformance.wire.declared import Declared
from oe_wire import v1

MOST = 2**32 - 1
# A wish inside the bounds that no engine gets right by accident.
ODD = 7

Wish = int | None


def wishes(floor: int, ceiling: int) -> tuple[Wish, ...]:
    """Values of one interval in milliseconds: none, zero, within, at the bounds, beyond them."""
    inside = (floor, min(floor + ODD, ceiling), (floor + ceiling) // 2, ceiling)
    outside = [wish for wish in (1, floor - 1) if 0 < wish < floor]
    outside += [wish for wish in (ceiling + 1, MOST) if ceiling < wish <= MOST]
    return tuple(dict.fromkeys((None, 0, *inside, *outside)))


def interval_cases(declared: Declared) -> SearchStrategy[Case]:
    """Requests with any two wishes; the shrunken one has none."""
    bounds = bounds_of(declared)
    if bounds is None:
        return st.just(Case())
    low, high = bounds.min_interval_floor_ms, bounds.min_interval_ceiling_ms
    intervals = st.one_of(st.sampled_from(wishes(low, high)), st.integers(low, high))
    low, high = bounds.heartbeat_floor_ms, bounds.heartbeat_ceiling_ms
    heartbeats = st.one_of(st.sampled_from(wishes(low, high)), st.integers(low, high))
    return st.builds(_case, intervals, heartbeats)


def outside_cases(declared: Declared) -> Iterable[Case]:
    """One wish outside the bounds, in either interval and direction, where there is one."""
    bounds = bounds_of(declared)
    if bounds is None:
        return
    for interval in (1, MOST):
        if not bounds.min_interval_floor_ms <= interval <= bounds.min_interval_ceiling_ms:
            yield _case(interval, None)
        if not bounds.heartbeat_floor_ms <= interval <= bounds.heartbeat_ceiling_ms:
            yield _case(0, interval)


def inside_cases(declared: Declared) -> Iterable[Case]:
    """A wish a little above each floor."""
    bounds = bounds_of(declared)
    if bounds is None:
        return
    yield _case(min(bounds.min_interval_floor_ms + ODD, bounds.min_interval_ceiling_ms), None)
    yield _case(0, min(bounds.heartbeat_floor_ms + ODD, bounds.heartbeat_ceiling_ms))


def short_heartbeat_cases(declared: Declared) -> Iterable[Case]:
    """Heartbeats at their floor beside the longest interval between snapshots, and the reverse."""
    bounds = bounds_of(declared)
    if bounds is None:
        return
    yield _case(bounds.min_interval_ceiling_ms, bounds.heartbeat_floor_ms)
    yield _case(bounds.min_interval_floor_ms, bounds.heartbeat_ceiling_ms)


def one(min_interval: Wish, heartbeat: Wish) -> Iterable[Case]:
    """A table of one request."""
    return (_case(min_interval, heartbeat),)


def fast_request(declared: Declared, initial: bool | None = None) -> v1.WatchLoadRequest:
    """As many responses as the engine gives: both intervals at their floor."""
    bounds = bounds_of(declared)
    floor = 1 if bounds is None else bounds.heartbeat_floor_ms
    return v1.WatchLoadRequest(
        min_interval_ms=0, heartbeat_interval_ms=floor, initial_snapshot=initial
    )


def quiet_request() -> v1.WatchLoadRequest:
    """Snapshots only: no heartbeat, and every change as soon as the engine tells it."""
    return v1.WatchLoadRequest(min_interval_ms=0, heartbeat_interval_ms=0)


def _case(min_interval: Wish, heartbeat: Wish) -> Case:
    return Case(v1.WatchLoadRequest(min_interval_ms=min_interval, heartbeat_interval_ms=heartbeat))
