"""The pool of KV blocks: who holds which block, and which are free.

A free block whose content is kept for reuse goes to the back of the free list, any other to the
front: blank blocks are taken first, then the content that has been unused for longest. Blocks of
one sequence are freed from its tail on, because its head serves more later requests.
"""

from collections.abc import Callable, Iterable
from collections.abc import Sequence as SequenceOf

from reference_engine.errors import EngineException


class BlockPool:
    """Fixed number of blocks with reference counts; ids are 0..num_blocks-1.

    A block is either free (count 0, once in the free list) or held (count of holders). The free
    list is doubly linked, so that any block leaves it in constant time.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.on_evict: Callable[[int], None] = _nothing
        self._holders: list[int] = []
        self._kept: list[bool] = []
        self._next: list[int] = []
        self._previous: list[int] = []
        self._num_free = 0
        self.reset()

    @property
    def num_free(self) -> int:
        """Blocks that can be taken now, those with kept content included."""
        return self._num_free

    @property
    def num_used(self) -> int:
        """Blocks that a sequence holds."""
        return self.num_blocks - self._num_free

    def blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold num_tokens tokens."""
        return -(-num_tokens // self.block_size)

    def holders(self, block: int) -> int:
        """How many sequences hold the block."""
        return self._holders[block]

    def take(self, count: int) -> list[int] | None:
        """`count` free blocks, now held once each, or None (and nothing taken) when too few.

        Kept content of a taken block is given up: `on_evict` is told first.
        """
        if count > self._num_free:
            return None
        taken = []
        for _ in range(count):
            block = self._next[self.num_blocks]
            self._unlink(block)
            if self._kept[block]:
                self._kept[block] = False
                self.on_evict(block)
            self._holders[block] = 1
            taken.append(block)
        return taken

    def hold(self, blocks: Iterable[int]) -> None:
        """Add a hold on each block, whether it is held already or free."""
        for block in blocks:
            if self._holders[block] == 0:
                self._unlink(block)
            self._holders[block] += 1

    def keep(self, block: int) -> None:
        """Mark the content of a held block as worth keeping once it is free."""
        self._kept[block] = True

    def drop(self, block: int) -> None:
        """Mark the content of a block as blank again; a free one moves to the front."""
        self._kept[block] = False
        if self._holders[block] == 0:
            self._unlink(block)
            self._link_after(self.num_blocks, block)

    def release(self, blocks: SequenceOf[int]) -> None:
        """Give up one hold on each block of a sequence, listed from its head to its tail.

        Raises EngineException when a block is not held: an accounting bug, never a caller's.
        """
        freed = []
        for block in reversed(blocks):
            if self._holders[block] == 0:
                raise EngineException(f"block {block} was released but nobody holds it")
            self._holders[block] -= 1
            if self._holders[block] == 0:
                freed.append(block)
                if self._kept[block]:
                    self._link_after(self._previous[self.num_blocks], block)
        for block in reversed(freed):
            if not self._kept[block]:
                self._link_after(self.num_blocks, block)

    def free_blocks(self) -> list[int]:
        """The free blocks in the order in which they will be taken."""
        blocks = []
        block = self._next[self.num_blocks]
        while block != self.num_blocks:
            blocks.append(block)
            block = self._next[block]
        return blocks

    def reset(self) -> None:
        """Free everything and keep no content, after a fault that left holders unknown."""
        count = self.num_blocks
        self._holders = [0] * count
        self._kept = [False] * count
        # Entry `count` is both ends of the list.
        self._next = [*range(1, count + 1), 0]
        self._previous = [count, *range(count)]
        self._num_free = count

    def _unlink(self, block: int) -> None:
        before, after = self._previous[block], self._next[block]
        self._next[before] = after
        self._previous[after] = before
        self._num_free -= 1

    def _link_after(self, place: int, block: int) -> None:
        after = self._next[place]
        self._next[place] = block
        self._previous[block] = place
        self._next[block] = after
        self._previous[after] = block
        self._num_free += 1


def _nothing(_block: int) -> None:
    """The default of `on_evict`."""
