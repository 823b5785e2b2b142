"""From what a watcher of the load wishes to what it is granted."""

from oe_wire import v1
from reference_engine.server.load_limits import LoadLimits
from reference_engine.server.rejection import Rejection, invalid


def granted(
    request: v1.WatchLoadRequest, limits: LoadLimits, num_ranks: int
) -> v1.WatchLoadSettings | Rejection:
    """The settings of a stream. Intervals are clamped; a bad choice of ranks is refused."""
    problem = _rank_problem(request, num_ranks)
    if problem is not None:
        return problem
    interval, interval_clamped = _min_interval(request, limits)
    heartbeat, heartbeat_clamped = _heartbeat(request, limits, interval)
    ranks = request.data_parallel_ranks or range(num_ranks)
    return v1.WatchLoadSettings(
        effective_min_interval_ms=interval,
        effective_heartbeat_interval_ms=heartbeat,
        initial_snapshot=request.initial_snapshot or not request.HasField("initial_snapshot"),
        include_per_rank=request.include_per_rank,
        data_parallel_ranks=sorted(set(ranks)) if request.include_per_rank else (),
        min_interval_clamped=interval_clamped,
        heartbeat_interval_clamped=heartbeat_clamped,
    )


def _rank_problem(request: v1.WatchLoadRequest, num_ranks: int) -> Rejection | None:
    ranks = request.data_parallel_ranks
    if ranks and not request.include_per_rank:
        return invalid("data_parallel_ranks needs include_per_rank, expected no ranks without it")
    unknown = [rank for rank in ranks if rank >= num_ranks]
    if unknown:
        expected = f"expected ranks from 0 to {num_ranks - 1}"
        return invalid(f"data_parallel_ranks holds {unknown[0]}, {expected}")
    return None


def _min_interval(request: v1.WatchLoadRequest, limits: LoadLimits) -> tuple[int, bool]:
    """Milliseconds, and whether they were clamped; 0 asks for the floor and gets it."""
    bounds = limits.min_interval
    if not request.HasField("min_interval_ms"):
        return bounds.default, False
    wish = request.min_interval_ms or bounds.floor
    return bounds.clamp(wish), bounds.clamp(wish) != wish


def _heartbeat(
    request: v1.WatchLoadRequest, limits: LoadLimits, min_interval: int
) -> tuple[int, bool]:
    """Milliseconds, and whether they were clamped or raised; 0 turns heartbeats off."""
    bounds = limits.heartbeat
    wish = request.heartbeat_interval_ms
    if not request.HasField("heartbeat_interval_ms"):
        wish = bounds.default
    elif not wish:
        return 0, False
    heartbeat = max(bounds.clamp(wish), min_interval)
    return heartbeat, heartbeat != wish
