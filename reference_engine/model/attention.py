"""Attention of a packed batch over the paged KV cache, row results independent of the batch.

Float addition isn't associative, so a row's result depends on how a BLAS kernel splits the sums.
Three habits keep the split the same whoever shares the batch, however a prompt is cut in chunks:
query rows come in multiples of 4, keys in whole tiles of 128, and the weighted sum adds tile
by tile. With them, results were equal bit by bit on x86 with AVX-512, torch 2.13, 1 and 2 threads.
The price is about a third of a decode step of a single sequence, nothing from four on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from reference_engine.kernels.rope_store import rotate
from reference_engine.model.batch import Batch
from reference_engine.model.kv_cache import KVCache

ROW_MULTIPLE = 4
"""Matrix products with fewer rows take other kernels (1, 2 and 3 rows differed from 4 to 300)."""
KEY_TILE = 128
"""Keys of one partial sum; BLAS itself splits sums over more than 192 keys by their number."""


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
    """The rows of a batch that have the same query length, attended to in one call."""

    tokens: Tensor | None
    """[rows * length] places in the packed batch; None if the group is the whole batch."""
    rows: int
    length: int
    slots: Tensor
    """[rows, keys] cache slot of every key, keys padded to whole tiles."""
    hidden: Tensor
    """bool [rows, length, keys]: True where the query must not see the key."""


def row_groups(batch: Batch, block_size: int) -> tuple[RowGroup, ...]:
    """Group the rows by query length, so that all decodes share one call."""
    starts = [0]
    for length in batch.query_lengths:
        starts.append(starts[-1] + length)
    by_length: dict[int, list[int]] = {}
    for row, length in enumerate(batch.query_lengths):
        by_length.setdefault(length, []).append(row)
    groups = []
    for length, rows in by_length.items():
        tokens = None
        if len(by_length) > 1:
            first = torch.tensor([starts[row] for row in rows]).unsqueeze(1)
            tokens = (first + torch.arange(length)).flatten()
        slots, hidden = _keys_of(batch, rows, length, block_size)
        groups.append(RowGroup(tokens, len(rows), length, slots, hidden))
    return tuple(groups)


def _keys_of(
    batch: Batch, rows: Sequence[int], length: int, block_size: int
) -> tuple[Tensor, Tensor]:
    """Slots and causal mask of some rows of equal query length."""
    context = torch.tensor([batch.context_lengths[row] for row in rows]).unsqueeze(1)
    longest = int(context.max())
    key = torch.arange(-(-longest // KEY_TILE) * KEY_TILE)
    tables = batch.block_tables[torch.tensor(rows)]
    block = (key // block_size).clamp(max=tables.shape[1] - 1)
    slots = tables[:, block] * block_size + key % block_size
    slots = slots.masked_fill(key >= context, 0)
    query = context - length + torch.arange(length)
    return slots, key > query.unsqueeze(2)


class PagedAttention:
    """Stores the new keys and values of a batch and attends over the cache, layer by layer."""

    def __init__(self, batch: Batch, cache: KVCache) -> None:
        self._batch = batch
        self._cache = cache
        self._groups = row_groups(batch, cache.block_size)

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
        out = torch.zeros_like(q)
        for group in self._groups:
            if group.tokens is None:
                out[:count] = attend(q[:count], keys, values, group)
            else:
                out[group.tokens] = attend(q[group.tokens], keys, values, group)
        return out


def attend(q: Tensor, keys: Tensor, values: Tensor, group: RowGroup) -> Tensor:
    """Attention of one group.

    q [rows * length, heads, head_dim]; keys and values [all slots, kv_heads, head_dim] of one
    layer. Query heads that share a KV head are further query rows, so that no key is repeated.
    """
    heads, head_dim = q.shape[1:]
    kv_heads = keys.shape[1]
    shared = heads // kv_heads
    index = group.slots.unsqueeze(1) * kv_heads + torch.arange(kv_heads).unsqueeze(1)
    k = functional.embedding(index, keys.flatten(0, 1)).to(q.dtype)
    v = functional.embedding(index, values.flatten(0, 1)).to(q.dtype)
    q = q.view(group.rows, group.length, kv_heads, shared, head_dim).transpose(1, 2)
    q = pad_rows(q.reshape(group.rows, kv_heads, group.length * shared, head_dim), dim=2)
    scores = (q * head_dim**-0.5) @ k.transpose(2, 3)
    real = scores[:, :, : group.length * shared]
    real.view(group.rows, kv_heads, group.length, shared, -1).masked_fill_(
        group.hidden[:, None, :, None], float("-inf")
    )
    weights = torch.softmax(scores, dim=-1)
    out = torch.zeros_like(q)
    for start in range(0, weights.shape[-1], KEY_TILE):
        tile = slice(start, start + KEY_TILE)
        out += weights[..., tile] @ v[:, :, tile]
    out = out[:, :, : group.length * shared]
    out = out.view(group.rows, kv_heads, group.length, shared, head_dim).transpose(1, 2)
    return out.reshape(-1, heads, head_dim)
