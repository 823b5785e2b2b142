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
        if not cache.flat:
            raise ValueError("the cache is laid out for a GPU, expected one allocated for a CPU")
        self._layers = cache.flat
        block_size, kv_heads, head_dim = cache.keys.shape[2:]
        count = batch.slots.shape[0]
        padded = count + -count % ROW_MULTIPLE
        self._slots = _by_head(batch.slots, kv_heads, block_size)
        self._turned = torch.empty(padded, heads + kv_heads, head_dim)
        self._k = self._turned[:count, heads:]
        groups = cut(batch)
        most = max(num_gathered(batch, rows, block_size) for rows in groups)
        self._memory = Memory(
            self._turned[:, :heads],
            torch.zeros(padded, heads, head_dim),
            torch.empty(kv_heads * most, head_dim),
        )
        self._groups = [
            row_group(batch, rows, kv_heads, block_size, self._memory) for rows in groups
        ]
        self._angles: tuple[Tensor, Tensor] | None = None

    def __call__(self, layer: int, qk: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """See Attend; the result is float32.

        n exceeds the tokens of the batch by its padding: those rows are not stored, and their
        results are zeros. The next layer overwrites the result.
        """
        if self._angles is None:
            self._angles = torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)
        cos, sin = self._angles
        qk = qk.float()
        swapped = qk.roll(qk.shape[-1] // 2, dims=-1)
        torch.mul(qk, cos, out=self._turned).addcmul_(swapped, sin)
        keys, values = self._layers[layer]
        self._store(keys.tokens, self._k)
        self._store(values.tokens, v[: len(self._k)])
        for group in self._groups:
            group.attend(keys.blocks, values.blocks)
        return self._memory.out

    def _store(self, cached: Tensor, new: Tensor) -> None:
        """Write new [n, kv_heads, head_dim] into [blocks * kv_heads * block_size, head_dim]."""
        rows = new.to(cached.dtype).reshape(-1, new.shape[2])
        cached.index_copy_(0, self._slots, rows)


def _by_head(slots: Tensor, kv_heads: int, block_size: int) -> Tensor:
    """Places [n * kv_heads] of tokens in a layer [blocks * kv_heads * block_size, head_dim]."""
    block, offset = slots // block_size, slots % block_size
    head = torch.arange(kv_heads)
    return ((block[:, None] * kv_heads + head) * block_size + offset[:, None]).flatten()
