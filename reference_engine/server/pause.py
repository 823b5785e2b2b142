"""Whether generation is paused, and how: what admission, health and AdminState go by."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from oe_wire import v1
from reference_engine.engine.stream import Stream


class Phase(Enum):
    """Of a pause: none, on the way, in force."""

    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"


@dataclass(slots=True)
class Pause:
    """holds_new: whether new requests are accepted and held while they cannot run, instead of
    refused. mode: the PauseMode in force, 0 for none. older: the requests that were running when
    the pause began. Used on the event loop's thread only.
    """

    holds_new: bool = False
    phase: Phase = Phase.RUNNING
    mode: int = v1.PAUSE_MODE_UNSPECIFIED
    older: frozenset[Stream] = frozenset()

    @property
    def closed(self) -> bool:
        """Whether new requests do not run."""
        return self.phase is not Phase.RUNNING

    @property
    def refuses_new(self) -> bool:
        """Whether new requests are refused."""
        return self.closed and not self.holds_new

    def num_held(self, active: Collection[Stream]) -> int:
        """How many of the active requests it keeps from running."""
        if not self.closed:
            return 0
        if self.phase is Phase.PAUSED and self.mode == v1.PAUSE_MODE_KEEP:
            return len(active)
        return sum(stream not in self.older for stream in active)
