"""Attention of one query token per row over the paged cache."""

import torch
from torch import Tensor


def paged_decode(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    block_tables: Tensor,
    context_lengths: Tensor,
    max_context: int,
) -> Tensor:
    """Attend with q [rows, heads, head_dim] to the first context_lengths[row] tokens of each row.

    keys and values are one layer [blocks, page, kv_heads, head_dim]; block_tables int32
    [rows, width] holds the blocks of a row in order, context_lengths int32 [rows]. max_context is
    at least the longest of them, and at most width * page. A row without context gets zeros.
    """
    rows, heads, head_dim = q.shape
    page, kv_heads = keys.shape[1:3]
    key = torch.arange(max_context, device=q.device)
    hidden = key >= context_lengths[:, None]
    slots = block_tables.long()[:, key // page] * page + key % page
    slots = slots.masked_fill(hidden, 0)
    k = keys.flatten(0, 1)[slots].to(q.dtype)
    v = values.flatten(0, 1)[slots].to(q.dtype)
    grouped = q.view(rows, kv_heads, heads // kv_heads, head_dim) * head_dim**-0.5
    scores = torch.einsum("rhgd,rkhd->rhgk", grouped, k).float()
    scores = scores.masked_fill(hidden[:, None, None], -torch.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0).to(q.dtype)
    return torch.einsum("rhgk,rkhd->rhgd", weights, v).reshape(q.shape)
