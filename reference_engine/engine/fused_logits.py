"""Penalties and grammar masks of a step by one kernel: what a GPU does instead of torch calls."""

from collections.abc import Sequence as SequenceOf

import numpy as np
import torch
from torch import Tensor

from reference_engine.engine.penalties import history_of
from reference_engine.engine.sequence import Sequence
from reference_engine.engine.token_mask import WORD_BITS, TokenMasks
from reference_engine.kernels.dispatch import Kernels
from reference_engine.kernels.logits import LARGEST, Penalties

NO_PENALTY = (1.0, 0.0, 0.0)


def adjust(
    kernels: Kernels,
    logits: Tensor,
    sequences: SequenceOf[Sequence],
    penalised: SequenceOf[int],
    masks: TokenMasks | None,
) -> None:
    """Change float32 logits [rows, vocab] in place; sequences has one entry per row.

    penalised: the rows that have a penalty. Temperature is left to the draw.
    """
    rows, vocabulary = logits.shape
    kernels.process_logits(
        logits,
        torch.zeros(rows, device=logits.device),
        penalties_of(sequences, penalised, logits.device) if penalised else None,
        bitmask_of(masks, rows, vocabulary).to(logits.device) if masks else None,
    )


def penalties_of(
    sequences: SequenceOf[Sequence], penalised: SequenceOf[int], device: torch.device
) -> Penalties:
    """The penalties of a batch; any finite one is legal and brought into float32's range."""
    histories = [history_of(sequences[row]) for row in penalised]
    factors = np.tile(NO_PENALTY, (len(sequences), 1))
    for row in penalised:
        sampling = sequences[row].request.sampling
        factors[row] = (
            sampling.repetition_penalty,
            sampling.frequency_penalty,
            sampling.presence_penalty,
        )
    columns = np.clip(factors, -LARGEST, LARGEST).astype(np.float32).T.copy()
    repetition, frequency, presence = torch.from_numpy(columns).to(device).unbind()
    entries = np.stack(
        (
            np.repeat(np.array(penalised), [len(history.ids) for history in histories]),
            np.concatenate([history.ids for history in histories]),
            np.concatenate([history.counts for history in histories]),
        )
    )
    places, tokens, counts = torch.from_numpy(entries.astype(np.int32)).to(device).unbind()
    return Penalties(places, tokens, counts, repetition, frequency, presence)


def bitmask_of(masks: TokenMasks, rows: int, vocabulary: int) -> Tensor:
    """Int32 [rows, ceil(vocabulary / 32)] on the CPU; rows without a grammar allow everything."""
    words = -(-vocabulary // WORD_BITS)
    bits = torch.full((rows, words), -1, dtype=torch.int32)
    given = min(words, masks.bits.shape[1])
    index = torch.tensor(masks.rows)
    bits[index] = 0
    bits[index, :given] = masks.bits[:, :given].to("cpu", torch.int32)
    return bits
