"""What runs in the next step: one token budget, decodes first, prefill chunks with the rest."""

from bisect import bisect_left, insort
from dataclasses import dataclass

from reference_engine.engine.block import BlockPool
from reference_engine.engine.cache_events import CacheEvents
from reference_engine.engine.prefix_cache import Prefix, PrefixCache
from reference_engine.engine.sequence import Sequence
from reference_engine.errors import EngineException

# A step that scores prompts needs the logits of all scored rows: 64 x 49,152 x 4 B = 12 MB.
PROMPT_SCORE_CHUNK = 64


@dataclass(frozen=True, slots=True)
class Row:
    """A sequence's part of a step: its next `num_tokens` pending tokens.

    copy: (source, target) block whose content has to be copied before the step.
    """

    sequence: Sequence
    num_tokens: int
    copy: tuple[int, int] | None = None

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
    """Two queues by rank: priority first, then age. The caller guarantees that one sequence
    alone fits.

    Nothing overtakes the head of the waiting queue, so no sequence starves behind others of its
    level. Out of blocks, the running sequence of the last rank gives up its blocks and is
    computed again later; the first can therefore always go on.
    """

    def __init__(
        self, pool: BlockPool, limits: SchedulerLimits, cache: PrefixCache | None = None
    ) -> None:
        self.pool = pool
        self.cache = cache or PrefixCache(pool, CacheEvents())
        self._limits = limits
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.preemptions = 0
        self.num_decodes = 0
        self.num_prefills = 0
        self._score_budget = 0

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence behind all of its rank or better."""
        insort(self.waiting, sequence, key=_rank)

    @property
    def busy(self) -> bool:
        """Whether a sequence runs or waits."""
        return bool(self.running or self.waiting)

    def knows(self, sequence: Sequence) -> bool:
        """Whether the sequence runs or waits."""
        return sequence.running or self._place(sequence) is not None

    def _place(self, sequence: Sequence) -> int | None:
        """Its place in the waiting queue."""
        place = bisect_left(self.waiting, sequence.rank, key=_rank)
        if place < len(self.waiting) and self.waiting[place] is sequence:
            return place
        return None

    def fork(self, parent: Sequence, child: Sequence) -> bool:
        """Let a child run on the blocks of its parent, whose whole prompt has been computed.

        Both go on in blocks of their own: whoever writes to a shared block first copies it.
        False when too many sequences run; the child is queued then.
        """
        if len(self.running) >= self._limits.max_running:
            self.add(child)
            return False
        full = parent.num_prompt // self.pool.block_size
        shared = parent.blocks[: self.pool.blocks_for(parent.num_prompt)]
        self.pool.hold(shared)
        child.set_blocks(shared)
        child.num_computed = parent.num_prompt
        child.prefixes = parent.prefixes[:full]
        child.digests = parent.digests[:full]
        self._start(child)
        return True

    def remove(self, sequence: Sequence) -> None:
        """Forget a sequence, wherever it is, and free its blocks."""
        if sequence.running:
            self.running.remove(sequence)
        else:
            place = self._place(sequence)
            if place is not None:
                del self.waiting[place]
        self._free(sequence)

    def clear(self) -> None:
        """Forget everything, after a fault."""
        self.waiting.clear()
        self.running.clear()
        self.pool.reset()
        self.cache.forget()
        self.num_decodes = self.num_prefills = 0

    def schedule(self) -> list[Row]:
        """The rows of the next step, best rank first, decodes before prefills."""
        rows: list[Row] = []
        self._score_budget = PROMPT_SCORE_CHUNK
        decoding = [sequence for sequence in self.running if sequence.num_pending == 1]
        prefilling = [sequence for sequence in self.running if sequence.num_pending > 1]
        for sequence in decoding[: self._limits.max_batched_tokens]:
            row = self._decode(sequence)
            if row is not None:
                rows.append(row)
        self.num_decodes = len(rows)
        budget = self._limits.max_batched_tokens - len(rows)
        for sequence in prefilling:
            if sequence.running:
                budget -= self._prefill(sequence, budget, rows)
        self._admit(budget, rows)
        self.num_prefills = len(rows) - self.num_decodes
        return rows

    def _decode(self, sequence: Sequence) -> Row | None:
        """A row for the next token and a block to write it to; None if it was preempted for it.

        Victims have a later rank, and `running` is sorted: none of them has a row yet.
        """
        while sequence.running:
            index = sequence.num_computed // self.pool.block_size
            if index < len(sequence.blocks) and self.pool.holders(sequence.blocks[index]) == 1:
                return Row(sequence, 1)
            taken = self.pool.take(1)
            if taken is None:
                self._preempt(self.running[-1])
            elif index == len(sequence.blocks):
                sequence.add_blocks(taken)
            else:
                shared = sequence.blocks[index]
                sequence.replace_block(index, taken[0])
                self.pool.release((shared,))
                return Row(sequence, 1, copy=(shared, taken[0]))
        return None

    def _prefill(self, sequence: Sequence, budget: int, rows: list[Row]) -> int:
        """Append a row for the next chunk, within the budgets; its number of tokens.

        No block is wanted here, because admission takes all that the known tokens need.
        """
        count = min(sequence.num_pending, budget)
        if sequence.scores_prompt:
            silent = max(0, sequence.next_prompt_score() - 1 - sequence.num_computed)
            count = min(count, silent + self._score_budget)
            self._score_budget -= max(0, count - silent)
        if count > 0:
            rows.append(Row(sequence, count))
        return count

    def _admit(self, budget: int, rows: list[Row]) -> None:
        while self.waiting and budget > 0 and len(self.running) < self._limits.max_running:
            sequence = self.waiting[0]
            if not self._reserve(sequence):
                return
            del self.waiting[0]
            self._start(sequence)
            budget -= self._prefill(sequence, budget, rows)

    def _reserve(self, sequence: Sequence) -> bool:
        """Take blocks for all known tokens, cached ones first, if each running sequence can then
        still grow by a block.

        Without that reserve a preempted sequence would come back only to be preempted again.
        """
        if self.running and self.pool.num_free <= len(self.running):
            return False
        prefixes = self.cache.match(sequence)
        blocks = [self._block_of(prefix) for prefix in prefixes]
        wanted = self.pool.blocks_for(len(sequence.token_ids)) - len(blocks)
        unused = sum(self.pool.holders(block) == 0 for block in blocks)
        if self.running and self.pool.num_free < unused + wanted + len(self.running):
            return False
        self.pool.hold(blocks)
        taken = self.pool.take(wanted)
        if taken is None:
            raise EngineException(f"{wanted} blocks are wanted, but the cache has too few")
        sequence.set_blocks(blocks + taken)
        sequence.prefixes = prefixes
        sequence.num_computed = len(blocks) * self.pool.block_size
        if sequence.cached_prompt_tokens is None:
            sequence.cached_prompt_tokens = sequence.num_computed
        return True

    def _block_of(self, prefix: Prefix) -> int:
        """One of the blocks with this content, if possible one that is held anyway."""
        return max(prefix.blocks, key=self.pool.holders)

    def _start(self, sequence: Sequence) -> None:
        sequence.running = True
        insort(self.running, sequence, key=_rank)

    def _preempt(self, sequence: Sequence) -> None:
        self.preemptions += 1
        self.running.remove(sequence)
        self._free(sequence)
        self.add(sequence)

    def _free(self, sequence: Sequence) -> None:
        self.pool.release(sequence.blocks)
        sequence.set_blocks(())
        sequence.prefixes = []
        sequence.num_computed = 0
        sequence.running = False


def _rank(sequence: Sequence) -> tuple[int, int]:
    return sequence.rank
