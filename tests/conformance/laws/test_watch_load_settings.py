"""Laws about what a load stream grants."""

from __future__ import annotations

import pytest

from oe_wire import v1
from tests.conformance.laws.watch import (
    BEAT_CEILING,
    BEAT_DEFAULT,
    BEAT_FLOOR,
    CEILING,
    DEFAULT,
    FLOOR,
    Stream,
    bounds,
    broken,
    declared,
    heartbeat,
    kept,
    settings,
    snapshot,
)

Wish = int | None
Granted = tuple[int, int, bool, bool]
SETTINGS_ROWS = {"023", "024", "025", "026", "027", "028"}
MOST = 2**32 - 1


def _stream(interval: Wish, beat: Wish, granted: Granted) -> Stream:
    request = v1.WatchLoadRequest(min_interval_ms=interval, heartbeat_interval_ms=beat)
    told = settings(granted[0], granted[1], clamped=granted[2], raised=granted[3])
    return Stream(request).put(told, 0).put(snapshot(initial=True), 0)


# Wishes, what a right engine grants, and the rows that this is about.
RIGHT: list[tuple[Wish, Wish, Granted, str]] = [
    (None, None, (DEFAULT, BEAT_DEFAULT, False, False), "023 028"),
    (0, None, (FLOOR, BEAT_DEFAULT, False, False), "023 024 028"),
    (None, 0, (DEFAULT, 0, False, False), "023 025"),
    (1, None, (FLOOR, BEAT_DEFAULT, True, False), "023 026 028"),
    (MOST, None, (CEILING, BEAT_DEFAULT, True, False), "023 026 028"),
    (0, 1, (FLOOR, BEAT_FLOOR, False, True), "024 026 028"),
    (0, MOST, (FLOOR, BEAT_CEILING, False, True), "024 026 028"),
    (FLOOR + 7, BEAT_FLOOR + 7, (FLOOR + 7, BEAT_FLOOR + 7, False, False), "027 028"),
    (CEILING, BEAT_FLOOR, (CEILING, CEILING, False, True), "027 028"),
    (CEILING, 1, (CEILING, CEILING, False, True), "027 028"),
]


@pytest.mark.parametrize(("interval", "beat", "granted", "rows"), RIGHT)
def test_right_grants_are_kept(interval: Wish, beat: Wish, granted: Granted, rows: str) -> None:
    """Each kind of wish is judged by its own rows, and a right grant breaks none."""
    call = _stream(interval, beat, granted).call()
    assert not broken(call)
    assert kept(call) & SETTINGS_ROWS == set(rows.split())


# Wishes, what a wrong engine grants, and the rows that this breaks.
WRONG: list[tuple[Wish, Wish, Granted, str]] = [
    (None, 0, (DEFAULT + 1, 0, False, False), "023"),
    (0, None, (FLOOR, BEAT_DEFAULT + 1, False, False), "023"),
    (0, None, (DEFAULT, BEAT_DEFAULT, False, False), "024"),
    (0, None, (FLOOR, BEAT_DEFAULT, True, False), "024"),
    (None, 0, (DEFAULT, BEAT_DEFAULT, False, False), "025"),
    (1, None, (1, BEAT_DEFAULT, True, False), "026"),
    (1, None, (FLOOR, BEAT_DEFAULT, False, False), "026"),
    (MOST, 0, (MOST, 0, False, False), "026"),
    (0, MOST, (FLOOR, BEAT_CEILING, False, False), "026"),
    (FLOOR + 7, None, (FLOOR, BEAT_DEFAULT, False, False), "027"),
    (FLOOR + 7, None, (FLOOR + 7, BEAT_DEFAULT, True, False), "027"),
    (CEILING, BEAT_FLOOR, (CEILING, BEAT_FLOOR, False, False), "028"),
    (CEILING, BEAT_FLOOR, (CEILING, CEILING, False, False), "028"),
]


@pytest.mark.parametrize(("interval", "beat", "granted", "rows"), WRONG)
def test_wrong_grants_are_found(interval: Wish, beat: Wish, granted: Granted, rows: str) -> None:
    """A wrong value or flag is a breach of the row about that wish."""
    assert broken(_stream(interval, beat, granted).call()) == set(rows.split())


def test_heartbeat_that_is_off() -> None:
    """Heartbeats that were turned off and reported so must not come."""
    stream = _stream(None, 0, (DEFAULT, 0, False, False)).put(heartbeat(), 1000)
    assert broken(stream.call()) == {"025"}


@pytest.mark.parametrize(
    ("granted", "rows"),
    [
        ((DEFAULT, BEAT_CEILING, False, True), set()),
        ((DEFAULT, BEAT_CEILING, False, False), {"025"}),
        ((DEFAULT, 0, False, False), {"025", "028"}),
    ],
)
def test_heartbeat_that_cannot_be_off(granted: Granted, rows: set[str]) -> None:
    """It is the ceiling then, flagged, and heartbeats come."""
    limits = bounds()
    limits.heartbeat_can_be_disabled = False
    stream = _stream(None, 0, granted).put(heartbeat(), 60_000)
    assert broken(stream.call(), declared(limits)) == rows


def test_changed_capabilities_are_not_judged() -> None:
    """Under another revision there may be other bounds."""
    stream = _stream(1, None, (1, 1, False, False))
    for response in stream.responses:
        response.capability_revision = 2
    assert not kept(stream.call()) & SETTINGS_ROWS
    assert not broken(stream.call()) & SETTINGS_ROWS


@pytest.mark.parametrize("name", ["min_interval_default_ms", "heartbeat_floor_ms"])
def test_insane_bounds_judge_nothing(name: str) -> None:
    """Bounds that contradict each other say nothing about a stream."""
    limits = bounds()
    setattr(limits, name, 10**6)
    call = _stream(1, None, (1, 1, False, False)).call()
    assert not kept(call, declared(limits)) & SETTINGS_ROWS
