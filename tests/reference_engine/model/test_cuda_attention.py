import dataclasses
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from reference_engine.errors import ConfigError
from reference_engine.kernels.dispatch import TORCH
from reference_engine.model.batch import Batch
from reference_engine.model.cuda_attention import CudaAttention
from reference_engine.model.cuda_graph import GraphedModel, buckets, graphed
from reference_engine.model.device import resolve_device
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.llama import Llama
from reference_engine.model.paged_prefill import reads_pages
from tests.reference_engine.model.build import BLOCK_SIZE, config, pack, random_model

WITHOUT_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")

PROMPTS = ([3, 1, 4, 1, 5, 9, 2], [2, 7], [8])
TABLES = ([5, 2, 7], [1, 6, 0], [3, 4, 8])


@pytest.fixture(scope="module")
def model() -> Llama:
    return random_model(config(num_layers=2))


def empty_cache(model: Llama) -> KVCache:
    return KVCache.allocate(model.config, 10, BLOCK_SIZE)


def steps() -> list[Batch]:
    """Prompts and single tokens mixed, then a chunk beside decodes, then decodes alone."""
    return [
        pack(PROMPTS, [0, 0, 0], TABLES),
        pack([[6], [5, 3, 5], [9]], [7, 2, 1], TABLES),
        pack([[1], [2], [3]], [8, 5, 2], TABLES),
    ]


def on_gpu_path(model: Llama, batch: Batch, cache: KVCache) -> Tensor:
    with torch.inference_mode():
        return model._forward_on_gpu(batch, cache)


def test_path_of_a_gpu_computes_what_the_cpu_does(model: Llama) -> None:
    """Packed batches of every mix give the logits of the CPU's attention, to rounding."""
    mine, theirs = empty_cache(model), empty_cache(model)
    for batch in steps():
        expected = model(batch, theirs)
        torch.testing.assert_close(on_gpu_path(model, batch, mine), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(mine.keys, theirs.keys, rtol=1e-4, atol=1e-4)


def test_cache_of_another_type(model: Llama) -> None:
    """With a bfloat16 cache the path of a GPU is as near to float32 as 8 bits are."""
    cache = KVCache.allocate(model.config, 10, BLOCK_SIZE, torch.bfloat16)
    exact = empty_cache(model)
    for batch in steps():
        expected = model(batch, exact)
        found = on_gpu_path(model, batch, cache)
        assert found.dtype is torch.float32
        assert float((found - expected).abs().max()) < 0.05 * float(expected.abs().max())


def test_path_of_a_gpu_stays_on_its_device(model: Llama) -> None:
    """No tensor of a step is made on the CPU: on another device (meta) they would not mix."""
    meta = torch.device("meta")
    kernels = dataclasses.replace(
        TORCH,
        rope_store=lambda q, *others: torch.empty_like(q),
        paged_decode=lambda q, *others: torch.empty_like(q),
    )
    far = Llama(model.config).to(meta).requires_grad_(requires_grad=False)
    cache = KVCache.allocate(far.config, 10, BLOCK_SIZE, device=meta)
    for batch in steps():
        moved = batch.to(far.device)
        states = far.hidden_states(
            moved.token_ids, moved.positions, CudaAttention(moved, cache, kernels)
        )
        assert far.logits(states[moved.logit_rows]).device == meta


class Replayed:
    """Stands in for a CUDA graph: computes the step anew, into the same memory."""

    def __init__(self, model: "WithoutCapture", rows: int) -> None:
        self._model = model
        self._rows = rows
        self.logits = model._step(rows)
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1
        self.logits.copy_(self._model._step(self._rows))


class WithoutCapture(GraphedModel):
    """Everything of GraphedModel but CUDA."""

    @torch.inference_mode()
    def _capture(self, rows: int) -> tuple[Replayed, Tensor]:  # type: ignore[override]
        graph = Replayed(self, rows)
        return graph, graph.logits


@torch.inference_mode()
def decode(model: Llama, rows: Sequence[int]) -> tuple[Tensor, Tensor, WithoutCapture]:
    """Logits of one decode step of some rows: by the model, by its graphs, and the graphs."""
    mine, theirs = empty_cache(model), empty_cache(model)
    graphs = WithoutCapture(model, mine, max_rows=4)
    prompts, tables = [PROMPTS[row] for row in rows], [TABLES[row] for row in rows]
    starts = [len(prompt) for prompt in prompts]
    for batch in (
        pack(prompts, [0] * len(rows), tables),
        pack([[6]] * len(rows), starts, tables),
    ):
        expected = model(batch, theirs)
        found = graphs(batch, mine)
    return found, expected, graphs


@pytest.mark.parametrize("rows", [(0,), (0, 1, 2), (2, 1)])
def test_replay_is_the_step(model: Llama, rows: tuple[int, ...]) -> None:
    """A decode in a padded bucket gives the logits of the model; a prompt runs without a graph."""
    found, expected, graphs = decode(model, rows)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert sum(graph.replays for graph, _ in graphs._graphs.values()) == 1


def test_graphs_leave_other_batches_alone(model: Llama) -> None:
    """Chunks, adapters, unwanted logits, too many rows or blocks, a long context: no replay."""
    graphs = WithoutCapture(model, empty_cache(model), max_rows=2)
    plain = pack([[1], [2]], [4, 5], TABLES[:2])
    assert graphs.replays(plain)
    assert not graphs.replays(pack([[1, 2]], [0], TABLES[:1]))
    assert not graphs.replays(pack([[1], [2], [3]], [4, 5, 6], TABLES))
    assert not graphs.replays(dataclasses.replace(plain, logit_rows=torch.tensor([0])))
    assert not graphs.replays(dataclasses.replace(plain, context_lengths=(5, 41)))
    wide = dataclasses.replace(plain, block_tables=torch.zeros(2, 11, dtype=torch.int64))
    assert not graphs.replays(wide)
    adapted = dataclasses.replace(plain, adapters=lambda x, name: None)
    assert not graphs.replays(adapted)


@pytest.mark.parametrize("most", [1, 2, 7, 8, 63, 64, 65, 200])
def test_buckets_end_at_the_largest_batch(most: int) -> None:
    """Buckets rise to exactly the largest batch."""
    sizes = buckets(most)
    assert sizes[-1] == most
    assert list(sizes) == sorted(set(sizes))


@WITHOUT_GPU
def test_nothing_of_a_gpu_on_a_cpu(model: Llama) -> None:
    """Without a GPU: no graphs, no library attention, and `auto` means the CPU."""
    cpu = torch.device("cpu")
    assert graphed(model, empty_cache(model), 4) is model
    assert not reads_pages(cpu, torch.bfloat16, 16, 4, 2, 64)
    assert resolve_device("auto") == resolve_device("cpu") == cpu


@WITHOUT_GPU
@pytest.mark.parametrize("name", ["cuda", "tpu", ""])
def test_device_that_is_not_there(name: str) -> None:
    """A device that can't be had is refused with its name."""
    with pytest.raises(ConfigError, match=f"device is '{name}'"):
        resolve_device(name)
