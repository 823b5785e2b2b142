"""The pool of KV blocks: who holds which block, and which are free.

Freed blocks go to the back of the free list in reverse order, so that the tail of a sequence is
reused before its head: the head is what a later request with the same prefix could still use.
"""

from collections import deque
from collections.abc import Sequence as SequenceOf

from reference_engine.errors import EngineException


class BlockPool:
    """Fixed number of blocks with reference counts; ids are 0..num_blocks-1.

    A block is either free (count 0, once in the free list) or held (count of holders).
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._free: deque[int] = deque(range(num_blocks))
        self._holders = [0] * num_blocks

    @property
    def num_free(self) -> int:
        """Blocks that can be taken now."""
        return len(self._free)

    def blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold num_tokens tokens."""
        return -(-num_tokens // self.block_size)

    def take(self, count: int) -> list[int] | None:
        """`count` free blocks, now held once each, or None (and nothing taken) when too few."""
        if count > len(self._free):
            return None
        taken = [self._free.popleft() for _ in range(count)]
        for block in taken:
            self._holders[block] = 1
        return taken

    def release(self, blocks: SequenceOf[int]) -> None:
        """Give up one hold on each block of a sequence, listed from its head to its tail.

        Raises EngineException when a block is not held: an accounting bug, never a caller's.
        """
        for block in reversed(blocks):
            if self._holders[block] == 0:
                raise EngineException(f"block {block} was released but nobody holds it")
            self._holders[block] -= 1
            if self._holders[block] == 0:
                self._free.append(block)

    def holders(self, block: int) -> int:
        """How many sequences hold the block."""
        return self._holders[block]

    def reset(self) -> None:
        """Free everything, after a fault that left holders unknown."""
        self._free = deque(range(self.num_blocks))
        self._holders = [0] * self.num_blocks
