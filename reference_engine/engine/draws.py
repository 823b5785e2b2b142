"""Rows of logits with what is drawn from them, as tensors."""

from collections.abc import Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_engine.engine.request import Sampling

CHUNK = 400_000
"""Weights of one pass over whole rows: 1.6 MB, so that the next pass finds them in the cache."""

# Beyond these the result is that of the limit, and float32 would give 0 * infinity.
COLDEST, HOTTEST = 1e-30, 1e30


@dataclass(frozen=True, slots=True)
class Draws:
    """Rows to draw for: logits [rows, vocab], and one entry per row of all else, float64 [rows].

    top_k 0 is none. mass: of all tokens, where the best one has 1; only for rows whose top-p needs
    it.
    """

    logits: Tensor
    numbers: Tensor
    temperature: Tensor
    top_p: Tensor
    top_k: Tensor
    min_p: Tensor
    mass: Tensor

    def part(self, rows: Tensor | slice) -> "Draws":
        """Some of the rows."""
        return Draws(
            self.logits[rows],
            self.numbers[rows],
            self.temperature[rows],
            self.top_p[rows],
            self.top_k[rows],
            self.min_p[rows],
            self.mass[rows],
        )

    def chunks(self) -> "Iterator[Draws]":
        """All rows, a few at a time on a CPU."""
        rows, vocabulary = self.logits.shape
        size = rows if self.logits.is_cuda else max(1, CHUNK // vocabulary)
        for first in range(0, rows, size):
            yield self.part(slice(first, first + size))

    def probabilities(self) -> Tensor:
        """Before filters, float32 [rows, vocab]."""
        gap = self.logits - self.logits.amax(dim=1, keepdim=True)
        return torch.softmax(gap.mul_((1 / self.temperature)[:, None].float()), dim=1)


def draws_of(logits: Tensor, samplings: SequenceOf[Sampling], numbers: SequenceOf[float]) -> Draws:
    """The rows with their options, and the mass of those that need it."""
    columns = [
        (
            number,
            min(max(sampling.temperature, COLDEST), HOTTEST),
            sampling.top_p,
            top_k_of(sampling, logits.shape[1]),
            sampling.min_p,
        )
        for sampling, number in zip(samplings, numbers, strict=True)
    ]
    table = torch.tensor(columns, dtype=torch.float64, device=logits.device)
    number, temperature, top_p, top_k, min_p = table.unbind(1)
    mass = torch.zeros_like(number)
    draws = Draws(logits, number, temperature, top_p, top_k, min_p, mass)
    wanted = [row for row, one in enumerate(columns) if one[2] < 1.0 and not one[3]]
    if wanted:
        rows = torch.tensor(wanted, device=logits.device)
        part = draws.part(rows) if len(wanted) < len(columns) else draws
        largest = [chunk.probabilities().amax(dim=1) for chunk in part.chunks()]
        draws.mass[rows] = 1 / torch.cat(largest).double()
    return draws


def top_k_of(sampling: Sampling, vocabulary: int) -> int:
    """The number of tokens to keep, 0 for all."""
    return sampling.top_k if 0 < sampling.top_k < vocabulary else 0
