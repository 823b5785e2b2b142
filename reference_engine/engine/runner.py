"""From rows to logits: packs a step into one batch and runs the model on it."""

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reference_engine.engine.scheduler import Row
from reference_engine.engine.sequence import Sequence
from reference_engine.lora.memory import AdapterMemory
from reference_engine.lora.product_memory import ProductMemory
from reference_engine.model.batch import Batch
from reference_engine.model.cuda_graph import GraphedModel
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.llama import Llama
from reference_engine.model.tiles import num_tiles

Integers = NDArray[np.int64]


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

    def __init__(
        self, model: Llama | GraphedModel, cache: KVCache, adapters: AdapterMemory | None = None
    ) -> None:
        self._model = model
        self._cache = cache
        self.adapters = adapters or ProductMemory()

    @torch.inference_mode()
    def run(self, rows: SequenceOf[Row]) -> StepLogits:
        """Compute the rows. The cache then holds their tokens; num_computed is the caller's."""
        wanted = _WantedLogits()
        offset = 0
        rows = sorted(rows, key=_company)
        for row in rows:
            wanted.add(row, offset)
            offset += row.num_tokens
        self._copy_blocks(rows)
        batch = self._batch(rows, wanted.indices)
        return wanted.split(self._model(batch, self._cache))

    def _copy_blocks(self, rows: SequenceOf[Row]) -> None:
        """Give rows that write to a shared block a copy of it first.

        All at once: every source is read before a block is written.
        """
        pairs = [row.copy for row in rows if row.copy is not None]
        if pairs:
            source, target = torch.tensor(pairs, dtype=torch.int64).unbind(1)
            for part in (self._cache.keys, self._cache.values):
                source, target = source.to(part.device), target.to(part.device)
                part[:, target] = part[:, source]

    def _batch(self, rows: SequenceOf[Row], logit_rows: list[int]) -> Batch:
        token_ids: list[int] = []
        lengths: list[int] = []
        contexts: list[int] = []
        for row in rows:
            sequence, first = row.sequence, row.sequence.num_computed
            token_ids += sequence.token_ids[first : first + row.num_tokens]
            lengths.append(row.num_tokens)
            contexts.append(first + row.num_tokens)
        tables = np.zeros((len(rows), max(len(row.sequence.blocks) for row in rows)), np.int64)
        for table, row in zip(tables, rows, strict=True):
            blocks = row.sequence.block_table
            table[: len(blocks)] = blocks
        positions, slots = _places(lengths, contexts, tables, self._cache.block_size)
        return Batch(
            token_ids=torch.tensor(token_ids, dtype=torch.int64),
            positions=torch.from_numpy(positions),
            slots=torch.from_numpy(slots),
            query_lengths=tuple(lengths),
            context_lengths=tuple(contexts),
            block_tables=torch.from_numpy(tables),
            logit_rows=torch.tensor(logit_rows, dtype=torch.int64),
            adapters=self.adapters.hook([row.sequence.request.adapter for row in rows], lengths),
        )


def _company(row: Row) -> tuple[int, int]:
    """Rows that attention computes in one call: of equal length, with as many tiles of keys."""
    return row.num_tokens, num_tiles(row.sequence.num_computed + row.num_tokens)


def _places(
    lengths: list[int], contexts: list[int], tables: Integers, block_size: int
) -> tuple[Integers, Integers]:
    """Positions and cache slots of all tokens of a step, both [tokens].

    Row r has lengths[r] tokens up to contexts[r], and its blocks in tables[r].
    """
    length = np.array(lengths)
    ends = np.cumsum(length)
    shift = np.array(contexts) - ends
    positions = np.arange(ends[-1]) + np.repeat(shift, length)
    row = np.repeat(np.arange(len(length)), length)
    blocks = tables[row, positions // block_size]
    return positions, blocks * block_size + positions % block_size


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
