"""Guided outputs in a step: the masks of a batch.

A guide and the other conditions of a request meet like this. A caller's own stop texts and stop
tokens end an output wherever they come, so it may be only the beginning of a guided text. EOS is
drawn only where the guide is complete; where nothing else is left, ignore_eos does not hold it
back, and before min_tokens it is an ordinary token without text, drawn again until there are
enough.
"""

from collections.abc import Sequence as SequenceOf

import torch

from reference_engine.engine.sequence import Sequence
from reference_engine.engine.token_mask import WORD_BITS, TokenMasks

GUIDE_FAILED = "guided: the guide led to a place without a way on, or became too complex"


def token_masks(sequences: SequenceOf[Sequence], vocabulary: int) -> TokenMasks | None:
    """The masks of the guided rows, None if there are none.

    Sequential on purpose: 16 rows of 49,152 tokens take 0.1 to 0.4 ms, and threads had outliers
    of 50 ms. A row whose guide failed may draw anything; the token is not used.
    """
    guided = [(row, one.matcher) for row, one in enumerate(sequences) if one.matcher is not None]
    if not guided:
        return None
    words = -(-vocabulary // WORD_BITS)
    bits = torch.zeros((len(guided), words), dtype=torch.int32)
    for place, (_, matcher) in enumerate(guided):
        mask = bits[place]
        matcher.fill(mask.data_ptr(), words * mask.element_size())
        if matcher.failed:
            mask.fill_(-1)
    return TokenMasks([row for row, _ in guided], bits)
