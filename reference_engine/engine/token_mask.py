"""Which tokens a grammar allows: one bit per token, as grammar libraries fill them."""

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

import torch
from torch import Tensor

WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class TokenMasks:
    """Masks of some rows of a batch.

    bits is int32 [len(rows), ceil(vocab / 32)]: token t is allowed if bit t % 32 of word t // 32
    is set. Rows that are not listed may draw any token.
    """

    rows: SequenceOf[int]
    bits: Tensor


def masked_out(bits: Tensor, vocabulary: int) -> Tensor:
    """Bool [rows, vocabulary], True for tokens that the bits [rows, words] do not allow.

    Tokens beyond the words are not allowed.
    """
    shifts = torch.arange(WORD_BITS, dtype=torch.int32, device=bits.device)
    allowed = (bits.unsqueeze(2) >> shifts).bitwise_and_(1).flatten(1).bool()
    missing = vocabulary - allowed.shape[1]
    if missing > 0:
        allowed = torch.nn.functional.pad(allowed, (0, missing))
    return ~allowed[:, :vocabulary]
