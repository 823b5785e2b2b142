"""One stream of WatchLoad: what is due on it, and the one write that is under way."""

import asyncio

from oe_wire import v1
from reference_engine.server.load_sample import Sample
from reference_engine.server.load_slot import LoadSlot, Moment

NANOS = 1_000_000


class Watcher:
    """Visited by the sampler, read by the call. Used on the event loop's thread only."""

    def __init__(self, settings: v1.WatchLoadSettings, instance_id: str, sample: Sample) -> None:
        self.closed = False
        self._slot = LoadSlot(instance_id, settings, sample.moment)
        self._ranks = tuple(settings.data_parallel_ranks)
        self._min_interval = settings.effective_min_interval_ms * NANOS
        self._heartbeat = settings.effective_heartbeat_interval_ms * NANOS
        self._wake = asyncio.Event()
        self._reading = False
        self._sent = sample.moment.unix_nanos
        self._next_snapshot = sample.moment.unix_nanos
        self._version = sample.version
        self._state = self._state_of(sample)
        if settings.initial_snapshot:
            self._snapshot(sample)

    def visit(self, sample: Sample) -> bool:
        """Produce what is due: a snapshot of something new, else a heartbeat after a silence."""
        if self._slot.ended or self.closed:
            return False
        now = sample.moment.unix_nanos
        if self._version != sample.version and now >= self._next_snapshot:
            self._version = sample.version
            state = self._state_of(sample)
            if state != self._state:
                self._state = state
                self._snapshot(sample)
                return True
        silent = self._reading and self._slot.empty
        if self._heartbeat and silent and now - self._sent >= self._heartbeat:
            self._slot.put_heartbeat(sample.moment)
            self._wake.set()
            return True
        return False

    def fail(self, error: v1.EngineError, moment: Moment) -> None:
        """End the stream with an error, after what waits. Later ones change nothing."""
        if not self._slot.ended:
            self._slot.put_error(error, moment)
            self._wake.set()

    def close(self) -> None:
        """Produce nothing more; the stream ends once its reader has taken what waits."""
        self.closed = True
        self._wake.set()

    async def next(self) -> v1.WatchLoadResponse | None:
        """What to write next, when the write before is over; None at the end of the stream."""
        self._reading = True
        while self._slot.empty:
            if self._slot.ended or self.closed:
                return None
            self._wake.clear()
            await self._wake.wait()
        self._reading = False
        response = self._slot.take()
        self._sent = response.timestamp_unix_nanos
        return response

    @property
    def failed(self) -> bool:
        """Whether the stream ends with an error message, and so with the status OK."""
        return self._slot.ended

    def _state_of(self, sample: Sample) -> tuple[bytes, int, int]:
        """What a new snapshot has to differ in."""
        return sample.view(self._ranks).key, sample.moment.epoch, sample.moment.revision

    def _snapshot(self, sample: Sample) -> None:
        self._next_snapshot = sample.moment.unix_nanos + self._min_interval
        self._slot.put_snapshot(sample.view(self._ranks).info, sample.moment)
        self._wake.set()
