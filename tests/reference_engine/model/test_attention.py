"""Attention over the paged cache: a row has the same bits alone and in any company."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from reference_engine.model.attention import PagedAttention
from reference_engine.model.batch import Batch
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.row_group import GROUP_TILES
from reference_engine.model.tiles import KEY_TILE, pad_rows

BLOCK, BLOCKS = 16, 400


def batch(lengths: Sequence[int], contexts: Sequence[int], tables: Tensor) -> Batch:
    """Rows of these lengths; `tables` has a row of blocks for each."""
    places = [
        (row, position)
        for row, (length, context) in enumerate(zip(lengths, contexts, strict=True))
        for position in range(context - length, context)
    ]
    row, position = torch.tensor(places).unbind(1)
    slots = tables[row, position // BLOCK] * BLOCK + position % BLOCK
    shape = tuple(lengths), tuple(contexts)
    return Batch(position, position, slots, *shape, tables, torch.arange(len(lengths)))


@pytest.mark.parametrize(("heads", "kv_heads", "size"), [(9, 3, 64), (8, 8, 32), (4, 1, 24)])
def test_rows_are_the_same_alone_and_in_a_crowd(heads: int, kv_heads: int, size: int) -> None:
    """Decodes and chunks of 1 to 6 tiles, so many that they are computed in several groups."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    contexts = [*range(3, 6 * KEY_TILE, 17), *[KEY_TILE, KEY_TILE + 1, 40] * 4]
    lengths = [5 if row % 5 == 4 else 1 for row in range(len(contexts))]
    lengths[0] = contexts[0]
    lengths, contexts = zip(*sorted(zip(lengths, contexts, strict=True)), strict=True)
    assert sum(-(-context // KEY_TILE) for context in contexts) > 2 * GROUP_TILES
    width = -(-max(contexts) // BLOCK)
    tables = torch.randint(1, BLOCKS, (len(contexts), width), generator=generator)
    # The last block of a row is its own, as it is in the engine: the step writes into it.
    shape = 1, BLOCKS + 2 * len(contexts), kv_heads, BLOCK, size
    cache = KVCache(*(random(*shape).transpose(2, 3) for _ in "kv"))
    for row, context in enumerate(contexts):
        tables[row, -(-context // BLOCK) - 1] = BLOCKS + 2 * row
        if context > BLOCK:
            tables[row, -(-context // BLOCK) - 2] = BLOCKS + 2 * row + 1
    total = sum(lengths)
    qk, v = random(total, heads + kv_heads, size), random(total, kv_heads, size)
    cos, sin = random(total, 1, size // 2), random(total, 1, size // 2)
    crowd = attended(batch(lengths, contexts, tables), cache, qk, v, cos, sin)
    start = 0
    for row, length in enumerate(lengths):
        mine = slice(start, start + length)
        one = batch([length], [contexts[row]], tables[row : row + 1])
        alone = attended(one, cache, qk[mine], v[mine], cos[mine], sin[mine])
        assert torch.equal(alone, crowd[mine])
        start += length


def attended(batch: Batch, cache: KVCache, qk: Tensor, v: Tensor, *angles: Tensor) -> Tensor:
    """What the attention of layer 0 gives for the tokens of the batch."""
    attend = PagedAttention(batch, cache, qk.shape[1] - v.shape[1])
    return attend(0, *map(pad_rows, (qk, v, *angles)))[: len(v)]


def test_a_cache_of_another_layout_is_refused() -> None:
    """Writes to it would go to a copy."""
    cache = KVCache(*(torch.zeros(1, 3, BLOCK, 2, 8) for _ in "kv"))
    with pytest.raises(ValueError, match="laid out for a GPU, expected one allocated for a CPU"):
        PagedAttention(batch([1], [1], torch.tensor([[1]])), cache, 2)
