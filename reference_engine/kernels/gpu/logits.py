"""Penalties on the listed tokens, then mask and temperature in one pass over the vocabulary."""

import triton.language as tl
from torch import Tensor

from reference_engine.kernels.gpu.jit import jit
from reference_engine.kernels.logits import LARGEST, Penalties

ENTRY_TILE = 256
VOCAB_TILE = 2048


@jit("entries")
def _penalise(
    logits: tl.tensor,
    rows: tl.tensor,
    tokens: tl.tensor,
    counts: tl.tensor,
    repetition: tl.tensor,
    frequency: tl.tensor,
    presence: tl.tensor,
    entries: tl.tensor,
    vocab: tl.tensor,
    largest: tl.constexpr,
    tile: tl.constexpr,
) -> None:
    at = tl.program_id(0) * tile + tl.arange(0, tile)
    inside = at < entries
    row = tl.load(rows + at, mask=inside, other=0)
    token = tl.load(tokens + at, mask=inside, other=0)
    count = tl.load(counts + at, mask=inside, other=0).to(tl.float32)
    place = logits + row.to(tl.int64) * vocab + token
    value = tl.load(place, mask=inside, other=0.0)
    factor = tl.load(repetition + row, mask=inside, other=1.0)
    value = tl.where(value > 0, value / factor, value * factor)
    value -= tl.load(frequency + row, mask=inside, other=0.0) * count
    value -= tl.where(count > 0, tl.load(presence + row, mask=inside, other=0.0), 0.0)
    # inf - inf, from penalties that overflow; NaN is what differs from itself.
    value = tl.where(value == value, value, 0.0)  # noqa: PLR0124
    value = tl.minimum(tl.maximum(value, -largest), largest)
    tl.store(place, value, mask=inside)


@jit()
def _mask_and_scale(
    logits: tl.tensor,
    temperature: tl.tensor,
    bitmask: tl.tensor,
    vocab: tl.tensor,
    words: tl.tensor,
    has_mask: tl.constexpr,
    tile: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    token = tl.program_id(1) * tile + tl.arange(0, tile)
    inside = token < vocab
    value = tl.load(logits + row * vocab + token, mask=inside, other=0.0)
    if has_mask:
        word = tl.load(bitmask + row * words + token // 32, mask=inside, other=0)
        value = tl.where(((word >> (token % 32)) & 1) != 0, value, -float("inf"))
    heat = tl.load(temperature + row)
    heat = tl.where(heat > 0, heat, 1.0)
    tl.store(logits + row * vocab + token, value / heat, mask=inside)


def process_logits(
    logits: Tensor,
    temperature: Tensor,
    penalties: Penalties | None = None,
    bitmask: Tensor | None = None,
) -> None:
    """See the twin; logits must be contiguous."""
    rows, vocab = logits.shape
    if penalties is not None and penalties.rows.numel():
        entries = penalties.rows.numel()
        _penalise[(-(-entries // ENTRY_TILE),)](
            logits,
            penalties.rows,
            penalties.tokens,
            penalties.counts,
            penalties.repetition,
            penalties.frequency,
            penalties.presence,
            entries,
            vocab,
            largest=LARGEST,
            tile=ENTRY_TILE,
            num_warps=4,
        )
    _mask_and_scale[(rows, -(-vocab // VOCAB_TILE))](
        logits,
        temperature,
        temperature if bitmask is None else bitmask,
        vocab,
        0 if bitmask is None else bitmask.shape[1],
        has_mask=bitmask is not None,
        tile=VOCAB_TILE,
        num_warps=8,
    )
