"""One forward step: rows of new tokens, packed one after the other without padding."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from reference_engine.model.adapters import AdapterHook


@dataclass(frozen=True, slots=True)
class Batch:
    """Any mix of prefill chunks and decodes; row r owns `query_lengths[r]` consecutive tokens.

    The last token of a row sits at position `context_lengths[r] - 1`. Its tensors are int64.
    """

    token_ids: Tensor
    """[tokens]"""
    positions: Tensor
    """[tokens], counted from 0 in each sequence."""
    slots: Tensor
    """[tokens] where the KV of each token is stored: block * block_size + offset."""
    query_lengths: tuple[int, ...]
    """Tokens of each row in this step, at least 1."""
    context_lengths: tuple[int, ...]
    """Tokens of each row that are in the cache after this step."""
    block_tables: Tensor
    """[rows, max_blocks] the blocks of each row in order, padded with 0."""
    logit_rows: Tensor
    """[n] indices into the packed tokens whose logits are wanted."""
    adapters: AdapterHook | None = None
    """What the adapters of the rows add to the projections."""

    def to(self, device: torch.device) -> "Batch":
        """The batch with its tensors on the device of the model; itself if they are there."""
        if self.token_ids.device == device:
            return self
        return replace(
            self,
            token_ids=self.token_ids.to(device),
            positions=self.positions.to(device),
            slots=self.slots.to(device),
            block_tables=self.block_tables.to(device),
            logit_rows=self.logit_rows.to(device),
        )
