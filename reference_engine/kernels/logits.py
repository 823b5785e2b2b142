"""From the model's logits to those that are sampled: penalties, mask, temperature."""

from dataclasses import dataclass

import torch
from torch import Tensor

LARGEST = torch.finfo(torch.float32).max


@dataclass(frozen=True, slots=True)
class Penalties:
    """The penalised tokens of a batch as a list, because a request names few of a vocabulary.

    No pair of row and token comes twice. A token that is only in the prompt has count 0.
    """

    rows: Tensor
    """int32 [entries]"""
    tokens: Tensor
    """int32 [entries], below the vocabulary."""
    counts: Tensor
    """int32 [entries]: how often the output holds the token."""
    repetition: Tensor
    """float32 [rows of the batch]; 1 changes nothing."""
    frequency: Tensor
    """float32 [rows of the batch], taken off per occurrence."""
    presence: Tensor
    """float32 [rows of the batch], taken off once if the output holds the token."""


def process_logits(
    logits: Tensor,
    temperature: Tensor,
    penalties: Penalties | None = None,
    bitmask: Tensor | None = None,
) -> None:
    """Change float32 logits [rows, vocab] in place: penalties, then mask, then temperature.

    temperature float32 [rows], 0 (greedy) leaves a row as it is; bitmask int32
    [rows, ceil(vocab / 32)], bit i % 32 of word i // 32 is 0 if token i is forbidden.
    """
    if penalties is not None:
        _penalise(logits, penalties)
    if bitmask is not None:
        token = torch.arange(logits.shape[1], device=logits.device)
        allowed = (bitmask[:, token // 32] >> (token % 32).int()) & 1
        logits.masked_fill_(allowed == 0, -torch.inf)
    logits.div_(torch.where(temperature > 0, temperature, 1.0)[:, None])


def _penalise(logits: Tensor, penalties: Penalties) -> None:
    rows, tokens = penalties.rows.long(), penalties.tokens.long()
    value = logits[rows, tokens]
    repetition = penalties.repetition[rows]
    value = torch.where(value > 0, value / repetition, value * repetition)
    counts = penalties.counts.float()
    value = value - penalties.frequency[rows] * counts
    value = value - penalties.presence[rows] * (counts > 0)
    # Any finite penalty is legal, and some overflow float32.
    logits[rows, tokens] = value.nan_to_num(0.0).clamp(-LARGEST, LARGEST)
