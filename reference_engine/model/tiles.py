"""Sizes that keep the rows of a batch independent of each other on a CPU.

Float addition isn't associative, so a row's result depends on how a BLAS kernel splits the sums.
Three habits keep the split the same whoever shares the batch, however a prompt is cut in chunks:
rows come in multiples of 4, keys in whole tiles of 64, and the weighted sum of values adds tile
by tile. With them, results were equal bit by bit on x86 with AVX-512, torch 2.13, 1 and 2 threads.
"""

from torch import Tensor, cat

ROW_MULTIPLE = 4
"""Matrix products with fewer rows take other kernels (1, 2 and 3 rows differed from 4 to 300)."""
KEY_TILE = 64
"""Keys of one partial sum. 32 was as fast for short rows and a fifth slower for long ones.
BLAS itself splits sums over more than 192 keys by their number."""


def pad_rows(x: Tensor, dim: int = 0) -> Tensor:
    """`x` with zeros appended along `dim` up to a multiple of ROW_MULTIPLE."""
    missing = -x.shape[dim] % ROW_MULTIPLE
    if not missing:
        return x
    shape = list(x.shape)
    shape[dim] = missing
    return cat((x, x.new_zeros(shape)), dim)


def num_tiles(context: int) -> int:
    """Tiles of keys that a row with this many tokens in the cache attends to."""
    return -(-context // KEY_TILE)
