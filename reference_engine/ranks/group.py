"""All ranks behind one server as one engine."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import fields

from reference_engine.engine.engine import Engine
from reference_engine.engine.load import LoadSnapshot
from reference_engine.engine.operation import Operation
from reference_engine.engine.request import Request
from reference_engine.engine.stream import Stream
from reference_engine.errors import WorkerError
from reference_engine.lora.low_rank import AdapterWeights
from reference_engine.ranks.rank import Rank


class RankGroup:
    """Chooses the rank of each request: the asked one, else one with the fewest open requests.

    Ranks of equal load take turns. Used on the event loop's thread only, but for `stop`.
    """

    def __init__(self, ranks: Sequence[Engine | Rank]) -> None:
        self._ranks = tuple(ranks)
        self._last = -1

    def __len__(self) -> int:
        return len(self._ranks)

    def start(self, on_change: Callable[[], None]) -> None:
        """Start every rank; on_change is called when `healthy` may have changed."""
        for rank in self._ranks:
            rank.start(on_change)

    def stop(self) -> None:
        """Abort what is open and end every rank. Blocks until their steps are over."""
        for rank in self._ranks:
            rank.stop()

    @property
    def alive(self) -> bool:
        """Whether requests are computed on every rank."""
        return all(rank.alive for rank in self._ranks)

    @property
    def healthy(self) -> bool:
        """Whether a request can be expected to succeed on every rank."""
        return all(rank.healthy for rank in self._ranks)

    @property
    def num_open(self) -> int:
        """Requests whose last event has not been delivered."""
        return sum(rank.num_open for rank in self._ranks)

    @property
    def loads(self) -> tuple[LoadSnapshot, ...]:
        """The load of each rank, in their order; no step waits for it."""
        return tuple(rank.load for rank in self._ranks)

    @property
    def load(self) -> LoadSnapshot:
        """The sums over all ranks."""
        loads = self.loads
        names = [field.name for field in fields(LoadSnapshot)]
        return LoadSnapshot(**{name: sum(getattr(one, name) for one in loads) for name in names})

    def has_room(self, rank: int | None = None) -> bool:
        """Whether one more request is within the limits: of this rank, else of any."""
        if rank is not None:
            return self._ranks[rank].has_room
        return any(one.has_room for one in self._ranks)

    def submit(
        self, request: Request, rank: int | None = None, fail_after: int | None = None
    ) -> Stream:
        """Queue a request. The caller checks `alive`, `has_room` and the window before.

        fail_after: tokens after which it fails, in a test of that.
        """
        chosen = self._choose() if rank is None else rank
        self._last = chosen
        stream = self._ranks[chosen].submit(request, fail_after)
        stream.rank = chosen
        return stream

    def put_adapter(self, key: str, weights: AdapterWeights) -> None:
        """Add an adapter to the memory of every rank."""
        for rank in self._ranks:
            rank.put_adapter(key, weights)

    def drop_adapter(self, key: str) -> None:
        """Forget an adapter on every rank."""
        for rank in self._ranks:
            rank.drop_adapter(key)

    def fail_after(self, stream: Stream, tokens: int | None) -> None:
        """Let a request fail after so many tokens, or not any more."""
        self._ranks[stream.rank].fail_after(stream, tokens)

    async def operate(self, operation: Operation, fault: str | None = None) -> None:
        """Carry out an operation on every rank, between two steps of each.

        Raises WorkerError with what the first rank that failed says. fault: what the last rank
        shall fail with, in a test of that.
        """
        faults = [None] * (len(self) - 1) + [fault]
        begun = [
            rank.operate(operation, one) for rank, one in zip(self._ranks, faults, strict=True)
        ]
        for rank, failure in enumerate(await asyncio.gather(*begun)):
            if failure is not None:
                raise WorkerError(f"rank {rank}: {failure}")

    def tell(self, operation: Operation) -> None:
        """The same without waiting: it takes effect before anything that is asked for later."""
        for rank in self._ranks:
            rank.operate(operation)

    def wedge(self, seconds: float | None) -> None:
        """Let every rank do nothing for so long, or until `unwedge`."""
        for rank in self._ranks:
            rank.wedge(seconds)

    def unwedge(self) -> None:
        """Let every rank go on."""
        for rank in self._ranks:
            rank.unwedge()

    def cancel(self, stream: Stream) -> None:
        """Drop a request whose reader has gone; nothing happens if it has ended."""
        self._ranks[stream.rank].cancel(stream)

    async def abort(self, stream: Stream) -> bool:
        """End a request as CANCELLED; False if it had ended on its own before."""
        return await self._ranks[stream.rank].abort(stream)

    def _choose(self) -> int:
        count = len(self._ranks)
        after_last = [(self._last + 1 + turn) % count for turn in range(count)]
        return min(after_last, key=lambda rank: self._ranks[rank].num_open)
