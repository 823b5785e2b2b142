"""What a watcher of the load is granted, for every kind of wish."""

import pytest

from oe_wire import v1
from reference_engine.server.load_limits import MESSAGE_MS, Interval, LoadLimits, load_capabilities
from reference_engine.server.load_settings import granted
from reference_engine.server.rejection import Rejection

LIMITS = LoadLimits(64, 10, Interval(20, 100, 900), Interval(50, 1000, 5000))
MOST = 2**32 - 1


def settings(num_ranks: int = 1, **wishes) -> v1.WatchLoadSettings:
    found = granted(v1.WatchLoadRequest(**wishes), LIMITS, num_ranks)
    assert isinstance(found, v1.WatchLoadSettings)
    return found


@pytest.mark.parametrize(
    ("wish", "effective", "clamped"),
    [
        (None, 100, False),
        (0, 20, False),
        (1, 20, True),
        (20, 20, False),
        (27, 27, False),
        (900, 900, False),
        (901, 900, True),
        (MOST, 900, True),
    ],
)
def test_min_interval(wish, effective, clamped):
    """Absent is the default, 0 the floor, and what lies outside is moved to a bound and flagged."""
    found = settings(min_interval_ms=wish)
    assert found.effective_min_interval_ms == effective
    assert found.min_interval_clamped is clamped


@pytest.mark.parametrize(
    ("wish", "effective", "clamped"),
    [
        (None, 1000, False),
        (0, 0, False),
        (1, 100, True),
        (57, 100, True),
        (100, 100, False),
        (107, 107, False),
        (5000, 5000, False),
        (MOST, 5000, True),
    ],
)
def test_heartbeat(wish, effective, clamped):
    """0 is off; others are clamped, and raised to the interval of snapshots (here 100)."""
    found = settings(heartbeat_interval_ms=wish)
    assert found.effective_heartbeat_interval_ms == effective
    assert found.heartbeat_interval_clamped is clamped


def test_a_default_heartbeat_is_raised_too():
    """Its flag is set although nothing was wished."""
    limits = LoadLimits(64, 10, Interval(1, 100, 5000), Interval(50, 1000, 5000))
    found = granted(v1.WatchLoadRequest(min_interval_ms=3000), limits, 1)
    assert isinstance(found, v1.WatchLoadSettings)
    assert found.effective_heartbeat_interval_ms == 3000
    assert found.heartbeat_interval_clamped


@pytest.mark.parametrize(("wish", "effective"), [(None, True), (True, True), (False, False)])
def test_the_initial_snapshot(wish, effective):
    """It comes unless it is declined."""
    assert settings(initial_snapshot=wish).initial_snapshot is effective


@pytest.mark.parametrize(
    ("per_rank", "asked", "given"),
    [(None, [], []), (False, [], []), (True, [], [0, 1, 2]), (True, [2, 0, 2], [0, 2])],
)
def test_ranks(per_rank, asked, given):
    """All ranks unless some are named, each once and ascending; none without include_per_rank."""
    found = settings(3, include_per_rank=per_rank, data_parallel_ranks=asked)
    assert list(found.data_parallel_ranks) == given
    assert found.include_per_rank is bool(per_rank)


@pytest.mark.parametrize(("per_rank", "ranks"), [(None, [0]), (False, [0]), (True, [0, 3])])
def test_a_bad_choice_of_ranks(per_rank, ranks):
    """Ranks without include_per_rank, and ranks that are not there, are refused."""
    request = v1.WatchLoadRequest(include_per_rank=per_rank, data_parallel_ranks=ranks)
    found = granted(request, LIMITS, 3)
    assert isinstance(found, Rejection)
    assert found.status.name == "INVALID_ARGUMENT"


@pytest.mark.parametrize("streams", [4, 64, 66, 67, 1000, 1024])
def test_what_is_advertised(streams):
    """The bounds are in order and leave time for a round; the required fields are reported."""
    load = load_capabilities(LoadLimits.of_streams(streams))
    round_ms = streams * MESSAGE_MS
    assert round_ms <= load.sample_period_ms
    assert round_ms < max(500, load.heartbeat_floor_ms / 2)
    for name in ("min_interval", "heartbeat"):
        bounds = [getattr(load, f"{name}_{bound}_ms") for bound in ("floor", "default", "ceiling")]
        assert [1, *bounds] == sorted([1, *bounds])
    assert {"running_requests", "queued_requests", "timestamp_unix_nanos"} <= set(
        load.reported_fields
    )
    assert load.max_watch_streams == streams
    if streams <= 66:
        assert (load.min_interval_default_ms, load.heartbeat_default_ms) == (100, 1000)
