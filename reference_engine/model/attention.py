"""Attention of a packed batch over the paged KV cache on a CPU, row results independent."""

import torch
from torch import Tensor

from reference_engine.model.batch import Batch
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.row_group import Memory, cut, num_gathered, row_group
from reference_engine.model.tiles import ROW_MULTIPLE


class PagedAttention:
    """Stores the new keys and values of a batch and attends over the cache, layer by layer."""

    def __init__(self, batch: Batch, cache: KVCache, heads: int) -> None:
        """Rows of equal query length and similar context should be neighbours: they share calls.

        Raises ValueError for a cache that doesn't lie in memory as KVCache.allocate lays it for a
        CPU.
        """
        self._keys, self._values = cache.keys.transpose(2, 3), cache.values.transpose(2, 3)
        if not (self._keys.is_contiguous() and self._values.is_contiguous()):
            raise ValueError("the cache is laid out for a GPU, expected one allocated for a CPU")
        kv_heads, block_size, head_dim = self._keys.shape[2:]
        self._count = batch.slots.shape[0]
        self._slots = _by_head(batch.slots, kv_heads, block_size)
        padded = self._count + -self._count % ROW_MULTIPLE
        groups = cut(batch)
        most = max(num_gathered(batch, rows, block_size) for rows in groups)
        self._memory = Memory(
            torch.zeros(padded, heads, head_dim),
            torch.zeros(padded, heads, head_dim),
            torch.empty(kv_heads * most, head_dim),
        )
        self._groups = [
            row_group(batch, rows, kv_heads, block_size, self._memory) for rows in groups
        ]
        self._turn: tuple[Tensor, Tensor] | None = None

    def __call__(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor
    ) -> Tensor:
        """Q [n, heads, head_dim], k and v [n, kv_heads, head_dim] -> float32 like q.

        n exceeds the tokens of the batch by its padding: those rows are not stored, and their
        results are zeros. The next layer overwrites the result.
        """
        if self._turn is None:
            self._turn = torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)
        _turn(q, *self._turn, self._memory.q)
        k = _turn(k, *self._turn)
        keys, values = self._keys[layer], self._values[layer]
        self._store(keys, k)
        self._store(values, v)
        keys, values = keys.flatten(0, 1).flatten(1), values.flatten(0, 1).flatten(1)
        for group in self._groups:
            group.attend(keys, values)
        return self._memory.out

    def _store(self, cached: Tensor, new: Tensor) -> None:
        """Write new [n, kv_heads, head_dim] into [blocks, kv_heads, block_size, head_dim]."""
        rows = new[: self._count].to(cached.dtype).reshape(-1, new.shape[2])
        cached.flatten(0, 2).index_copy_(0, self._slots, rows)


def _by_head(slots: Tensor, kv_heads: int, block_size: int) -> Tensor:
    """Places [n * kv_heads] of tokens in a layer [blocks * kv_heads * block_size, head_dim]."""
    block, offset = slots // block_size, slots % block_size
    head = torch.arange(kv_heads)
    return ((block[:, None] * kv_heads + head) * block_size + offset[:, None]).flatten()


def _turn(x: Tensor, cos: Tensor, sin: Tensor, out: Tensor | None = None) -> Tensor:
    """Rotate x [n, heads, head_dim]; cos and sin float32 [n, 1, head_dim], sin with its signs."""
    swapped = x.roll(x.shape[-1] // 2, dims=-1)
    return torch.mul(x, cos, out=out).add_(swapped.mul_(sin))
