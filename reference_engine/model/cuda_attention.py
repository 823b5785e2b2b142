"""Attention of a packed batch on a GPU: decodes by the paged kernel, prompt chunks by torch."""

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from reference_engine.kernels.dispatch import Kernels, kernels_for
from reference_engine.model.batch import Batch
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.paged_prefill import Chunks, paged_prefill


class DecodeAttention:
    """One query token a row; all it needs lies in tensors, so a CUDA graph can replay it."""

    def __init__(
        self,
        cache: KVCache,
        slots: Tensor,
        block_tables: Tensor,
        contexts: Tensor,
        max_context: int,
        kernels: Kernels | None = None,
    ) -> None:
        """What the rows of a step need: slots int64 [rows], -1 for padding; block_tables int32
        [rows, width]; contexts int32 [rows], none above max_context.
        """
        self._cache = cache
        self._slots = slots
        self._block_tables = block_tables
        self._contexts = contexts
        self._max_context = max_context
        self._kernels = kernels or kernels_for(cache.device)

    def __call__(self, layer: int, qk: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Store, then attend; the result has the type of v."""
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        q, k = qk.tensor_split((-v.shape[1],), dim=1)
        q = self._kernels.rope_store(q, k, v, cos, sin, self._slots, keys, values)
        return self.attend(keys, values, q).to(v.dtype)

    def attend(self, keys: Tensor, values: Tensor, q: Tensor) -> Tensor:
        """Attend with rotated queries to what is stored."""
        return self._kernels.paged_decode(
            q, keys, values, self._block_tables, self._contexts, self._max_context
        )


class CudaAttention:
    """Any batch: rows of one token go to DecodeAttention, the others to paged_prefill."""

    def __init__(self, batch: Batch, cache: KVCache, kernels: Kernels | None = None) -> None:
        self._cache = cache
        self._slots = batch.slots
        self._kernels = kernels or kernels_for(cache.device)
        device = cache.device
        starts = list(accumulate(batch.query_lengths, initial=0))
        decodes = [row for row, length in enumerate(batch.query_lengths) if length == 1]
        prompts = [row for row, length in enumerate(batch.query_lengths) if length > 1]
        tables = batch.block_tables.int()
        self._decode_tokens = _indices([starts[row] for row in decodes], device)
        self._prompt_tokens = _indices(
            [token for row in prompts for token in range(starts[row], starts[row + 1])], device
        )
        self._decode = self._chunks = None
        if decodes:
            contexts = [batch.context_lengths[row] for row in decodes]
            self._decode = DecodeAttention(
                cache,
                batch.slots,
                tables[_indices(decodes, device)],
                torch.tensor(contexts, dtype=torch.int32, device=device),
                max(contexts),
                self._kernels,
            )
        if prompts:
            self._chunks = _chunks(batch, prompts, tables, device)

    def __call__(self, layer: int, qk: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Store, then attend; the result has the type of v."""
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        q, k = qk.tensor_split((-v.shape[1],), dim=1)
        q = self._kernels.rope_store(q, k, v, cos, sin, self._slots, keys, values)
        if self._chunks is None and self._decode is not None:
            return self._decode.attend(keys, values, q).to(v.dtype)
        out = torch.empty_like(q)
        if self._decode is not None:
            out[self._decode_tokens] = self._decode.attend(keys, values, q[self._decode_tokens])
        if self._chunks is not None:
            queries = q[self._prompt_tokens]
            out[self._prompt_tokens] = paged_prefill(queries, keys, values, self._chunks)
        return out.to(v.dtype)


def _indices(places: Sequence[int], device: torch.device) -> Tensor:
    return torch.tensor(places, dtype=torch.int64, device=device)


def _chunks(batch: Batch, rows: Sequence[int], tables: Tensor, device: torch.device) -> Chunks:
    lengths = tuple(batch.query_lengths[row] for row in rows)
    contexts = tuple(batch.context_lengths[row] for row in rows)
    starts = list(accumulate(lengths, initial=0))
    return Chunks(
        starts=torch.tensor(starts, dtype=torch.int32, device=device),
        query_lengths=lengths,
        context_lengths=contexts,
        contexts=torch.tensor(contexts, dtype=torch.int32, device=device),
        block_tables=tables[_indices(rows, device)],
    )
