"""LoadInfo from the snapshots of the ranks, as GetLoad and WatchLoad want it."""

import time
from collections.abc import Iterable, Sequence

from oe_wire import v1
from reference_engine.engine.load import LoadSnapshot
from reference_engine.server.deployment import Deployment

# Fields of LoadSnapshot and what LoadInfo calls them.
RANK_FIELDS = {
    "running_requests": "running_requests",
    "queued_requests": "queued_requests",
    "used_blocks": "used_kv_blocks",
    "total_blocks": "total_kv_blocks",
    "prefill_batch_size": "prefill_batch_size",
    "decode_batch_size": "decode_batch_size",
}
TOTAL_FIELDS = RANK_FIELDS | {
    "running_tokens": "running_tokens",
    "waiting_tokens": "waiting_tokens",
}


class LoadClock:
    """Unix time that never goes back nor stands still, whatever is done to the machine's clock.

    After the machine's clock was set back it stays ahead of it.
    """

    def __init__(self) -> None:
        self._offset = 0

    def now(self) -> int:
        """Nanoseconds since 1970."""
        # In this order: a pause between the two makes the offset too small, which max() forgets.
        offset = time.time_ns() - time.monotonic_ns()
        self._offset = max(self._offset, offset)
        return time.monotonic_ns() + self._offset


def load_info(
    deployment: Deployment,
    loads: Sequence[LoadSnapshot],
    now: int,
    ranks: Iterable[int] = (),
) -> v1.LoadInfo:
    """The load of all ranks, whose snapshots come in their order, and that of each wanted rank.

    now: Unix time of the snapshots in nanoseconds. ranks: duplicates count once. active_kv_sessions
    is 0, because there are no sessions.
    """
    info = v1.LoadInfo(
        instance_id=deployment.instance_id, timestamp_unix_nanos=now, active_kv_sessions=0
    )
    for ours, theirs in TOTAL_FIELDS.items():
        setattr(info, theirs, sum(getattr(load, ours) for load in loads))
    for rank in sorted(set(ranks)):
        of_rank = info.ranks.add(data_parallel_rank=rank)
        for ours, theirs in RANK_FIELDS.items():
            setattr(of_rank, theirs, getattr(loads[rank], ours))
    return info
