"""What a step costs outside the model: scheduling, the batch, sampling, text, events."""

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_engine.engine.build import build_core
from reference_engine.engine.config import EngineConfig
from reference_engine.engine.request import Request, Sampling, Stopping
from reference_engine.model.batch import Batch
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.load import LoadedModel


class NoModel:
    """Gives fixed logits at once, and counts the time that even that takes.

    They are about as peaked as those of a language model: standard deviation 4.
    """

    def __init__(self, vocab_size: int, rows: int) -> None:
        self.device = torch.device("cpu")
        self.seconds = 0.0
        generator = torch.Generator().manual_seed(0)
        self._logits = 4 * torch.randn(rows, vocab_size, generator=generator)

    def __call__(self, batch: Batch, _cache: KVCache) -> Tensor:
        start = time.perf_counter()
        logits = self._logits[: len(batch.logit_rows)].clone()
        self.seconds += time.perf_counter() - start
        return logits


@dataclass(frozen=True, slots=True)
class Overhead:
    """Milliseconds of a step of `rows` decoding sequences, median over all steps."""

    rows: int
    vocab_size: int
    sampling: str
    milliseconds: float


def overhead(loaded: LoadedModel, rows: int, sampling: Sampling, steps: int = 50) -> Overhead:
    """Decode steps of `rows` sequences with a tokenizer and sizes of a real model."""
    model = NoModel(loaded.config.vocab_size, rows)
    stand_in = LoadedModel(loaded.name, model, loaded.tokenizer, loaded.config)  # type: ignore[arg-type]
    core = build_core(stand_in, EngineConfig(num_blocks=rows * (steps // 16 + 4), max_running=rows))
    stopping = Stopping(max_tokens=steps + 2, ignore_eos=True)
    for _ in range(rows):
        core.add(Request((1, 2, 3), sampling, stopping))
    core.step()
    taken = []
    for _ in range(steps):
        model.seconds = 0.0
        start = time.perf_counter()
        core.step()
        taken.append(time.perf_counter() - start - model.seconds)
    kind = "greedy" if sampling.greedy else "temperature, top-p"
    return Overhead(rows, loaded.config.vocab_size, kind, sorted(taken)[steps // 2] * 1e3)
