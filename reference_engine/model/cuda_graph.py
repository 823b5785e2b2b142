"""Decode steps replayed as CUDA graphs, one for each bucket of batch sizes.

A step of a small model is some hundred launches of a few microseconds each, and Python takes
longer to make them than the GPU to run them; a replay is one launch.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from reference_engine.kernels.dispatch import kernels_for
from reference_engine.model.batch import Batch
from reference_engine.model.cuda_attention import DecodeAttention
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.llama import Llama

MAX_CONTEXT = 16_384
"""Longest context of a graph: its scratch memory is sized for it, 2 MiB a row with 32 heads of 128.
Steps with a longer row run without a graph."""


def buckets(max_rows: int) -> tuple[int, ...]:
    """The batch sizes that get a graph: 1, 2, 4, 8, then every 8, from 64 on every 32."""
    sizes = [1, 2, 4, *range(8, 64, 8), *range(64, max_rows + 32, 32)]
    return (*(size for size in sizes if size < max_rows), max_rows)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Where a graph reads its step: fixed memory, which is overwritten before each replay."""

    token_ids: Tensor
    positions: Tensor
    slots: Tensor
    contexts: Tensor
    block_tables: Tensor

    @classmethod
    def empty(cls, rows: int, width: int, device: torch.device) -> "Inputs":
        """Padding only: no slot, no context."""
        return cls(
            token_ids=torch.zeros(rows, dtype=torch.int64, device=device),
            positions=torch.zeros(rows, dtype=torch.int64, device=device),
            slots=torch.full((rows,), -1, dtype=torch.int64, device=device),
            contexts=torch.zeros(rows, dtype=torch.int32, device=device),
            block_tables=torch.zeros((rows, width), dtype=torch.int32, device=device),
        )

    def write(self, batch: Batch, rows: int) -> None:
        """Put the batch into the first rows and padding into the others up to `rows`."""
        count = len(batch.query_lengths)
        self.token_ids[:count].copy_(batch.token_ids)
        self.positions[:count].copy_(batch.positions)
        self.slots[:count].copy_(batch.slots)
        self.contexts[:count].copy_(torch.tensor(batch.context_lengths, dtype=torch.int32))
        self.block_tables[:count, : batch.block_tables.shape[1]].copy_(batch.block_tables)
        # Token and position of a row of padding are whatever they were: nobody reads its result.
        self.slots[count:rows].fill_(-1)
        self.contexts[count:rows].fill_(0)


class GraphedModel:
    """A model whose decode steps are replayed; it is called like the model itself.

    The cache is the one that was given here: a graph knows its memory.
    """

    def __init__(self, model: Llama, cache: KVCache, max_rows: int) -> None:
        self._model = model
        self._cache = cache
        self._buckets = buckets(max_rows)
        page = cache.block_size
        longest = min(model.config.max_position_embeddings, cache.num_blocks * page, MAX_CONTEXT)
        width = -(-longest // page)
        self._max_context = width * page
        self._inputs = Inputs.empty(max_rows, width, cache.device)
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        # The largest first: the memory of its intermediates then serves all smaller ones.
        for rows in reversed(self._buckets):
            self._graphs[rows] = self._capture(rows)

    def __call__(self, batch: Batch, cache: KVCache) -> Tensor:
        """Logits of the step, float32 [rows, vocab]; valid until the next call."""
        if cache is not self._cache or not self.replays(batch):
            logits: Tensor = self._model(batch, cache)
            return logits
        count = len(batch.query_lengths)
        rows = next(size for size in self._buckets if size >= count)
        self._inputs.write(batch, rows)
        graph, logits = self._graphs[rows]
        graph.replay()
        return logits[:count]

    def replays(self, batch: Batch) -> bool:
        """Whether a graph computes this batch: one token a row, all of whose logits are wanted."""
        count = len(batch.query_lengths)
        return (
            batch.adapters is None
            and count <= self._buckets[-1]
            and batch.token_ids.shape[0] == count
            and batch.logit_rows.tolist() == list(range(count))
            and max(batch.context_lengths) <= self._max_context
            and batch.block_tables.shape[1] <= self._inputs.block_tables.shape[1]
        )

    @torch.inference_mode()
    def _capture(self, rows: int) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        # Kernels compile and libraries allocate at their first run, which a capture can't hold.
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._step(rows)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        pool = next(iter(self._graphs.values()))[0].pool() if self._graphs else None
        with torch.cuda.graph(graph, pool=pool):
            logits = self._step(rows)
        return graph, logits

    def _step(self, rows: int) -> Tensor:
        """The decode of the first rows of the inputs."""
        inputs = self._inputs
        attend = DecodeAttention(
            self._cache,
            inputs.slots[:rows],
            inputs.block_tables[:rows],
            inputs.contexts[:rows],
            self._max_context,
        )
        states = self._model.hidden_states(inputs.token_ids[:rows], inputs.positions[:rows], attend)
        return self._model.logits(states).float()


def graphed(model: Llama, cache: KVCache, max_rows: int) -> Llama | GraphedModel:
    """The model with graphs where they can be: on a CUDA device with Triton's kernels.

    The twins, which serve a GPU without Triton, ask the GPU for shapes, and a capture can't wait.
    """
    if cache.device.type != "cuda" or kernels_for(cache.device).name != "triton":
        return model
    return GraphedModel(model, cache, max_rows)
