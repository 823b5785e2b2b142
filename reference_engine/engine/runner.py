"""From rows to logits: packs a step into one batch and runs the model on it."""

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from reference_engine.engine.scheduler import Row
from reference_engine.engine.sequence import Sequence
from reference_engine.model.batch import Batch
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.llama import Llama


@dataclass(frozen=True, slots=True)
class PromptRows:
    """Logits that score prompt tokens first..first+count-1 of a sequence."""

    sequence: Sequence
    first: int
    count: int
    logits: Tensor  # [count, vocab]


@dataclass(frozen=True, slots=True)
class StepLogits:
    """The logits of a step: one row per sampling sequence, and those of scored prompts."""

    sampling: tuple[Sequence, ...]
    logits: Tensor  # [len(sampling), vocab]
    prompts: tuple[PromptRows, ...]


class Runner:
    """Owns the KV cache and calls the model; knows nothing of queues or outputs."""

    def __init__(self, model: Llama, cache: KVCache) -> None:
        self._model = model
        self._cache = cache

    @torch.inference_mode()
    def run(self, rows: SequenceOf[Row]) -> StepLogits:
        """Compute the rows. The cache then holds their tokens; num_computed is the caller's."""
        wanted = _WantedLogits()
        offset = 0
        for row in rows:
            wanted.add(row, offset)
            offset += row.num_tokens
        batch = self._batch(rows, wanted.indices)
        return wanted.split(self._model(batch, self._cache))

    def _batch(self, rows: SequenceOf[Row], logit_rows: list[int]) -> Batch:
        block_size = self._cache.block_size
        tokens: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        widest = max(len(row.sequence.blocks) for row in rows)
        tables = np.zeros((len(rows), widest), dtype=np.int64)
        for number, row in enumerate(rows):
            sequence = row.sequence
            first, last = sequence.num_computed, sequence.num_computed + row.num_tokens
            tokens += sequence.token_ids[first:last]
            positions += range(first, last)
            blocks = sequence.blocks
            slots += [
                blocks[at // block_size] * block_size + at % block_size for at in range(first, last)
            ]
            tables[number, : len(blocks)] = blocks
        return Batch(
            token_ids=torch.tensor(tokens, dtype=torch.int64),
            positions=torch.tensor(positions, dtype=torch.int64),
            slots=torch.tensor(slots, dtype=torch.int64),
            query_lengths=tuple(row.num_tokens for row in rows),
            context_lengths=tuple(row.sequence.num_computed + row.num_tokens for row in rows),
            block_tables=torch.from_numpy(tables),
            logit_rows=torch.tensor(logit_rows, dtype=torch.int64),
        )


class _WantedLogits:
    """Which packed rows need logits: first those that sample, then those that score prompts."""

    def __init__(self) -> None:
        self._sampling: list[Sequence] = []
        self._sampling_rows: list[int] = []
        self._prompts: list[tuple[Sequence, int, int]] = []
        self._prompt_rows: list[int] = []

    @property
    def indices(self) -> list[int]:
        return self._sampling_rows + self._prompt_rows

    def add(self, row: Row, offset: int) -> None:
        """Note the wanted logits of a row whose tokens begin at `offset` in the batch."""
        sequence = row.sequence
        if row.samples:
            self._sampling.append(sequence)
            self._sampling_rows.append(offset + row.num_tokens - 1)
        if sequence.scores_prompt:
            computed = sequence.num_computed
            # The logits of position p score the token at p + 1.
            first = sequence.next_prompt_score()
            last = min(computed + row.num_tokens, sequence.num_prompt - 1)
            if first <= last:
                start = offset + first - 1 - computed
                self._prompts.append((sequence, first, last - first + 1))
                self._prompt_rows += range(start, start + last - first + 1)

    def split(self, logits: Tensor) -> StepLogits:
        """Hand the model's rows, in the order of `indices`, to those who asked for them."""
        at = len(self._sampling)
        prompts = []
        for sequence, first, count in self._prompts:
            prompts.append(PromptRows(sequence, first, count, logits[at : at + count]))
            at += count
        sampled = logits[: len(self._sampling)]
        return StepLogits(tuple(self._sampling), sampled, tuple(prompts))
