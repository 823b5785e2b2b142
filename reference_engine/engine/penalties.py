"""Repetition, frequency and presence penalties of a batch, in one gather and one scatter.

Repetition looks at prompt and output, frequency and presence at the output only.
"""

from collections.abc import Sequence as SequenceOf

import numpy as np
import torch
from torch import Tensor

from reference_engine.engine.history import TokenHistory
from reference_engine.engine.sequence import Sequence


def penalise(logits: Tensor, rows: SequenceOf[int], sequences: SequenceOf[Sequence]) -> None:
    """Change in place the rows of logits [batch, vocab] that belong to sequences, in order."""
    histories = [history_of(sequence) for sequence in sequences]
    sampling = [sequence.request.sampling for sequence in sequences]
    sizes = np.array([len(history.ids) for history in histories])
    row = torch.from_numpy(np.repeat(np.array(rows), sizes)).to(logits.device)
    ids = torch.from_numpy(np.concatenate([one.ids for one in histories])).to(logits.device)
    counts = np.concatenate([one.counts for one in histories])
    values = logits[row, ids].double()
    repeated = np.array([one.repetition_penalty for one in sampling]).repeat(sizes)
    repetition = torch.from_numpy(repeated).to(logits.device)
    values = torch.where(values > 0, values / repetition, values * repetition)
    frequency = np.array([one.frequency_penalty for one in sampling]).repeat(sizes)
    presence = np.array([one.presence_penalty for one in sampling]).repeat(sizes)
    # Any finite penalty is legal: 1e308 overflows here, and is brought back below.
    with np.errstate(over="ignore", invalid="ignore"):
        subtracted = frequency * counts + presence * (counts > 0)
    values -= torch.from_numpy(subtracted).to(logits.device)
    logits[row, ids] = values.float().nan_to_num_(nan=0.0)


def history_of(sequence: Sequence) -> TokenHistory:
    """The counted tokens of a sequence, brought up to date."""
    history = sequence.history
    if history is None:
        history = sequence.history = TokenHistory(sequence.request.prompt)
    history.add(sequence.token_ids[sequence.num_prompt + history.num_output :])
    return history
