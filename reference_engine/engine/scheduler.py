"""What runs in the next step: one token budget, decodes first, prefill chunks with the rest."""

from collections import deque
from dataclasses import dataclass

from reference_engine.engine.block import BlockPool
from reference_engine.engine.sequence import Sequence

# A step that scores a prompt needs the logits of all its rows: 64 x 49,152 x 4 B = 12 MB.
PROMPT_SCORE_CHUNK = 64


@dataclass(frozen=True, slots=True)
class Row:
    """A sequence's part of a step: its next `num_tokens` pending tokens."""

    sequence: Sequence
    num_tokens: int

    @property
    def samples(self) -> bool:
        """Whether the row computes the last known token, so that a new one can be drawn."""
        return self.num_tokens == self.sequence.num_pending


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """max_running: sequences in a step. max_batched_tokens: tokens of a step."""

    max_running: int
    max_batched_tokens: int


class Scheduler:
    """Two queues, first come first served. The caller guarantees that one sequence alone fits.

    Out of blocks, the youngest running sequence gives up its blocks and is computed again
    later; the oldest can therefore always go on.
    """

    def __init__(self, pool: BlockPool, limits: SchedulerLimits) -> None:
        self._pool = pool
        self._limits = limits
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.preemptions = 0

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence behind all older ones."""
        position = len(self.waiting)
        while position > 0 and self.waiting[position - 1].order > sequence.order:
            position -= 1
        self.waiting.insert(position, sequence)

    def remove(self, sequence: Sequence) -> None:
        """Forget a sequence, wherever it is, and free its blocks."""
        if sequence in self.running:
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)
        self._free(sequence)

    def clear(self) -> None:
        """Forget everything, after a fault."""
        self.waiting.clear()
        self.running.clear()
        self._pool.reset()

    def schedule(self) -> list[Row]:
        """The rows of the next step, oldest decode first; empty when there is no work."""
        rows: list[Row] = []
        budget = self._limits.max_batched_tokens
        decoding = [sequence for sequence in self.running if sequence.num_pending == 1]
        prefilling = [sequence for sequence in self.running if sequence.num_pending > 1]
        for sequence in decoding + prefilling:
            count = min(self._chunk(sequence), budget)
            if count and self._make_room(sequence, count):
                rows.append(Row(sequence, count))
                budget -= count
        self._admit(budget, rows)
        self.running.sort(key=_order)
        return rows

    def _make_room(self, sequence: Sequence, count: int) -> bool:
        """Get blocks for `count` more tokens, or preempt the sequence itself.

        Victims are younger, and `running` is sorted: none of them is in this step already.
        Prefills never get here without blocks, because admission takes all that they need.
        """
        if sequence not in self.running:
            return False
        while not self._reserve(sequence, count):
            victim = self.running[-1]
            self._preempt(victim)
            if victim is sequence:
                return False
        return True

    def _admit(self, budget: int, rows: list[Row]) -> None:
        while self.waiting and budget > 0 and len(self.running) < self._limits.max_running:
            sequence = self.waiting[0]
            if not self._fits(sequence) or not self._reserve(sequence, sequence.num_pending):
                return
            self.waiting.popleft()
            self.running.append(sequence)
            count = min(self._chunk(sequence), budget)
            rows.append(Row(sequence, count))
            budget -= count

    def _fits(self, sequence: Sequence) -> bool:
        """Whether all known tokens fit and each running sequence can still grow by a block.

        Without that reserve a preempted sequence would come back only to be preempted again.
        """
        if not self.running:
            return True
        reserve = len(self.running)
        return self._pool.num_free >= self._pool.blocks_for(sequence.num_pending) + reserve

    def _chunk(self, sequence: Sequence) -> int:
        if sequence.scores_prompt:
            return min(sequence.num_pending, PROMPT_SCORE_CHUNK)
        return sequence.num_pending

    def _reserve(self, sequence: Sequence, count: int) -> bool:
        wanted = self._pool.blocks_for(sequence.num_computed + count) - len(sequence.blocks)
        if wanted <= 0:
            return True
        taken = self._pool.take(wanted)
        if taken is None:
            return False
        sequence.blocks += taken
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self.preemptions += 1
        self.running.remove(sequence)
        self._free(sequence)
        self.add(sequence)

    def _free(self, sequence: Sequence) -> None:
        self._pool.release(sequence.blocks)
        sequence.blocks = []
        sequence.num_computed = 0


def _order(sequence: Sequence) -> int:
    return sequence.order
