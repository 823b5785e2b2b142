"""Attention of prompt chunks over the paged cache on a GPU, by what the installed torch has.

Newer torch reads the pages in place (`varlen_attn` with a block table); which page sizes and
types it takes depends on the FlashAttention inside, so a tiny example decides, by its values too.
Otherwise the pages are gathered row by row for scaled_dot_product_attention.
"""

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

log = logging.getLogger(__name__)

TOLERANCE = 0.05
"""Largest difference of the two ways on the example; its values are about 1 and have 8 bits."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """Rows of new tokens, packed; the tensors are int32 and on the GPU."""

    starts: Tensor
    """[rows + 1] where each row begins among the packed tokens, and their number."""
    query_lengths: tuple[int, ...]
    context_lengths: tuple[int, ...]
    contexts: Tensor
    """[rows], context_lengths."""
    block_tables: Tensor
    """[rows, width]"""


def paged_prefill(q: Tensor, keys: Tensor, values: Tensor, chunks: Chunks) -> Tensor:
    """Causal attention of q [tokens, heads, head_dim], like q.

    keys and values [blocks, page, kv_heads, head_dim] of one layer hold the chunks already; q has
    their type.
    """
    if reads_pages(keys.device, keys.dtype, keys.shape[1], q.shape[1], keys.shape[2], q.shape[2]):
        return over_pages(q, keys, values, chunks)
    return over_gathered(q, keys, values, chunks)


def over_gathered(q: Tensor, keys: Tensor, values: Tensor, chunks: Chunks) -> Tensor:
    """Gather the keys and values of a row, then scaled_dot_product_attention."""
    # Two seconds to import, and a CPU never needs it.
    from torch.nn.attention.bias import causal_lower_right  # noqa: PLC0415

    page = keys.shape[1]
    shared = q.shape[1] // keys.shape[2]
    out = torch.empty_like(q)
    start = 0
    sizes = zip(chunks.query_lengths, chunks.context_lengths, strict=True)
    for row, (length, context) in enumerate(sizes):
        blocks = chunks.block_tables[row, : -(-context // page)].long()
        k = keys[blocks].flatten(0, 1)[:context].repeat_interleave(shared, dim=1)
        v = values[blocks].flatten(0, 1)[:context].repeat_interleave(shared, dim=1)
        end = start + length
        out[start:end] = functional.scaled_dot_product_attention(
            q[None, start:end].transpose(1, 2),
            k[None].transpose(1, 2),
            v[None].transpose(1, 2),
            attn_mask=causal_lower_right(length, context),
        )[0].transpose(0, 1)
        start = end
    return out


def over_pages(q: Tensor, keys: Tensor, values: Tensor, chunks: Chunks) -> Tensor:
    """`varlen_attn` on the pages; num_splits 1 keeps a row's sums independent of the batch."""
    attend = varlen_attention()
    if attend is None:
        raise RuntimeError("this torch has no varlen_attn with block_table")
    ends = functional.pad(chunks.contexts.cumsum(0, dtype=torch.int32), (1, 0))
    return attend(
        q,
        keys,
        values,
        chunks.starts,
        ends,
        max(chunks.query_lengths),
        max(chunks.context_lengths),
        window_size=(-1, 0),
        enable_gqa=q.shape[1] != keys.shape[2],
        seqused_k=chunks.contexts,
        block_table=chunks.block_tables,
        num_splits=1,
    )


@cache
def varlen_attention() -> Callable[..., Tensor] | None:
    """The varlen_attn of torch if it is there and has all arguments that over_pages gives it."""
    try:
        from torch.nn.attention.varlen import varlen_attn  # noqa: PLC0415  # since torch 2.10
    except ImportError:
        return None
    function: Any = varlen_attn
    needed = {"window_size", "enable_gqa", "seqused_k", "block_table", "num_splits"}
    return function if needed <= inspect.signature(function).parameters.keys() else None


@cache
def reads_pages(
    device: torch.device, dtype: torch.dtype, page: int, heads: int, kv_heads: int, head_dim: int
) -> bool:
    """Whether varlen_attn takes pages of this shape here and gives the right values."""
    halves = (torch.bfloat16, torch.float16)
    if device.type != "cuda" or dtype not in halves or varlen_attention() is None:
        return False
    chunks = Chunks(
        starts=torch.tensor([0, 3, 5], dtype=torch.int32, device=device),
        query_lengths=(3, 2),
        context_lengths=(3, page + 2),
        contexts=torch.tensor([3, page + 2], dtype=torch.int32, device=device),
        block_tables=torch.tensor([[2, 0], [1, 3]], dtype=torch.int32, device=device),
    )
    q = torch.randn(5, heads, head_dim, device=device, dtype=dtype)
    keys = torch.randn(4, page, kv_heads, head_dim, device=device, dtype=dtype)
    values = torch.randn_like(keys)
    try:
        found = over_pages(q, keys, values, chunks)
    except (RuntimeError, TypeError, ValueError) as error:
        log.info("prompts are gathered from the cache: varlen_attn refuses its pages: %s", error)
        return False
    difference = (found - over_gathered(q, keys, values, chunks)).abs().max().item()
    if not difference <= TOLERANCE:
        log.warning(
            "prompts are gathered from the cache: varlen_attn on pages is off by %g", difference
        )
    return bool(difference <= TOLERANCE)
