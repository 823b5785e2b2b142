"""Attention of a packed batch over the paged KV cache, row results independent of the batch.

Float addition isn't associative, so a row's result depends on how a BLAS kernel splits the sums.
Three habits keep the split the same whoever shares the batch, however a prompt is cut in chunks:
query rows come in multiples of 4, keys in whole tiles of 64, and the weighted sum adds tile
by tile. With them, results were equal bit by bit on x86 with AVX-512, torch 2.13, 1 and 2 threads.
The price at 1, 16 and 64 decodes of SmolLM2 is 4, 13 and 55 ms a step over all layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_engine.kernels.rope_store import rotate
from reference_engine.model.batch import Batch
from reference_engine.model.kv_cache import KVCache

ROW_MULTIPLE = 4
"""Matrix products with fewer rows take other kernels (1, 2 and 3 rows differed from 4 to 300)."""
GROUP_TILES = 32
"""Tiles of one call: 1.5 MB of SmolLM2's keys; 8 and 16 were slower by 10 to 25 %."""
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
    return torch.cat((x, x.new_zeros(shape)), dim)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows of a batch that have the same query length, attended to in one call."""

    tokens: Tensor | None
    """[rows * length] places in the packed batch; None if the group is the whole batch."""
    rows: int
    length: int
    index: Tensor
    """[rows * kv_heads * keys] where each key lies in a layer's cache, keys in whole tiles."""
    bias: Tensor
    """[rows, 1, length, 1, keys]: minus infinity where the query must not see the key, else 0."""
    queries: Tensor
    """[rows, kv_heads, query rows, head_dim], whose last rows stay zeros up to a multiple of 4."""


def row_groups(
    batch: Batch, block_size: int, heads: tuple[int, int], head_dim: int
) -> tuple[RowGroup, ...]:
    """Group the rows by query length, so that decodes share calls; heads: of queries, of keys.

    Rows with as many tiles are neighbours, and a group's keys fit into a core's cache: they are
    still there when they are read, right after they were gathered.
    """
    starts = [0]
    for length in batch.query_lengths:
        starts.append(starts[-1] + length)
    tiles = [-(-context // KEY_TILE) for context in batch.context_lengths]
    order = sorted(range(len(tiles)), key=lambda row: (batch.query_lengths[row], tiles[row]))
    groups = []
    for rows in _cut(order, batch.query_lengths, tiles):
        length = batch.query_lengths[rows[0]]
        tokens = None
        if rows != list(range(len(order))):
            first = torch.tensor([starts[row] for row in rows]).unsqueeze(1)
            tokens = (first + torch.arange(length)).flatten()
        slots, bias = _keys_of(batch, rows, length, block_size)
        kv_heads = heads[1]
        index = slots.unsqueeze(1) * kv_heads + torch.arange(kv_heads).unsqueeze(1)
        size = length * heads[0] // kv_heads
        queries = torch.zeros(len(rows), kv_heads, size + -size % ROW_MULTIPLE, head_dim)
        groups.append(RowGroup(tokens, len(rows), length, index.flatten(), bias, queries))
    return tuple(groups)


def _cut(order: list[int], lengths: Sequence[int], tiles: Sequence[int]) -> list[list[int]]:
    """Neighbours of equal length, together GROUP_TILES at most unless one row has more."""
    groups: list[list[int]] = []
    for row in order:
        group = groups[-1] if groups else []
        fits = (len(group) + 1) * tiles[row] <= GROUP_TILES
        if group and fits and lengths[group[0]] == lengths[row]:
            group.append(row)
        else:
            groups.append([row])
    return groups


def _keys_of(
    batch: Batch, rows: Sequence[int], length: int, block_size: int
) -> tuple[Tensor, Tensor]:
    """Slots and causal bias of some rows of equal query length."""
    context = torch.tensor([batch.context_lengths[row] for row in rows]).unsqueeze(1)
    longest = int(context.max())
    key = torch.arange(-(-longest // KEY_TILE) * KEY_TILE)
    tables = batch.block_tables[torch.tensor(rows)]
    block = (key // block_size).clamp(max=tables.shape[1] - 1)
    slots = tables[:, block] * block_size + key % block_size
    slots = slots.masked_fill(key >= context, 0)
    query = context - length + torch.arange(length)
    hidden = key > query.unsqueeze(2)
    bias = torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))
    return slots, bias[:, None, :, None]


class PagedAttention:
    """Stores the new keys and values of a batch and attends over the cache, layer by layer."""

    def __init__(self, batch: Batch, cache: KVCache, heads: int) -> None:
        self._batch = batch
        self._cache = cache
        kv_heads, head_dim = cache.keys.shape[3:]
        self._groups = row_groups(batch, cache.block_size, (heads, kv_heads), head_dim)

    def __call__(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor
    ) -> Tensor:
        """Q [n, heads, head_dim], k and v [n, kv_heads, head_dim] -> like q.

        n may exceed the tokens of the batch (padding at the end): those rows are not stored,
        and their results are zeros.
        """
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        count = self._batch.slots.shape[0]
        keys = self._cache.keys[layer].flatten(0, 1)
        values = self._cache.values[layer].flatten(0, 1)
        keys.index_copy_(0, self._batch.slots, k[:count].to(keys.dtype))
        values.index_copy_(0, self._batch.slots, v[:count].to(values.dtype))
        keys, values = keys.flatten(0, 1), values.flatten(0, 1)
        out = torch.zeros_like(q)
        for group in self._groups:
            if group.tokens is None:
                out[:count] = attend(q[:count], keys, values, group)
            else:
                mine = q.index_select(0, group.tokens)
                out.index_copy_(0, group.tokens, attend(mine, keys, values, group))
        return out


def attend(q: Tensor, keys: Tensor, values: Tensor, group: RowGroup) -> Tensor:
    """Attention of one group.

    q [rows * length, heads, head_dim]; keys and values [all slots * kv_heads, head_dim] of one
    layer. Query heads that share a KV head are further query rows, so that no key is repeated.
    """
    rows, kv_heads, padded, head_dim = group.queries.shape
    shared = q.shape[1] // kv_heads
    size = group.length * shared
    split = (rows, kv_heads, group.length, shared)
    torch.mul(
        q.view(rows, group.length, kv_heads, shared, head_dim).transpose(1, 2),
        head_dim**-0.5,
        out=group.queries[:, :, :size].view(*split, head_dim),
    )
    pairs = rows * kv_heads
    k = keys.index_select(0, group.index).to(q.dtype).view(pairs, -1, head_dim)
    scores = group.queries.view(pairs, padded, head_dim).bmm(k.transpose(1, 2))
    scores.view(rows, kv_heads, padded, -1)[:, :, :size].view(*split, -1).add_(group.bias)
    weights = torch.softmax(scores, dim=-1)
    v = values.index_select(0, group.index).to(q.dtype).view(pairs, -1, head_dim)
    out = weights[..., :KEY_TILE].bmm(v[:, :KEY_TILE])
    for start in range(KEY_TILE, weights.shape[-1], KEY_TILE):
        tile = slice(start, start + KEY_TILE)
        out += weights[..., tile].bmm(v[:, tile])
    out = out.view(rows, kv_heads, padded, head_dim)[:, :, :size]
    out = out.view(*split, head_dim).transpose(1, 2)
    return out.reshape(-1, q.shape[1], head_dim)
