"""Paged decode attention in chunks of 256 keys, merged by their log-sum-exp.

A chunk's sums don't depend on which program computes it, so the number of programs may follow the
batch (many a row when rows are few) and a row's result still doesn't depend on the other rows.
Writing and reading the partial sums costs 1/128 of the KV traffic (bfloat16) for each query head
that shares a KV head.
"""

import torch
import triton.language as tl
from torch import Tensor

from reference_engine.kernels.gpu.jit import INTERPRETED, jit, multiprocessors, power_of_two
from reference_engine.kernels.paged_decode import paged_decode as twin

CHUNK = 256
"""Keys of one partial sum."""
KEY_TILE = 64
"""Keys in registers at once."""
MERGE_TILE = 16
"""Partial sums that the merge loads at once."""
LOG2_E = 1.4426950408889634


@jit("table_stride", "num_chunks")
def _chunks(
    q: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    tables: tl.tensor,
    contexts: tl.tensor,
    out: tl.tensor,
    lse: tl.tensor,
    scale: tl.tensor,
    table_stride: tl.tensor,
    num_chunks: tl.tensor,
    kv_heads: tl.constexpr,
    group: tl.constexpr,
    group_tile: tl.constexpr,
    head_dim: tl.constexpr,
    page: tl.constexpr,
    chunk: tl.constexpr,
    tile: tl.constexpr,
    direct: tl.constexpr,
    widened: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    context = tl.load(contexts + row)
    member = tl.arange(0, group_tile)
    part = tl.arange(0, head_dim)
    head = row * (kv_heads * group) + kv_head * group + member
    asked = (member < group)[:, None]
    query = tl.load(q + head[:, None] * head_dim + part[None, :], mask=asked, other=0.0)
    if widened:
        query = query.to(tl.float32)
    for number in range(tl.program_id(2), tl.cdiv(context, chunk), tl.num_programs(2)):
        end = tl.minimum(context, (number + 1) * chunk)
        top = tl.full([group_tile], -float("inf"), dtype=tl.float32)
        total = tl.zeros([group_tile], dtype=tl.float32)
        summed = tl.zeros([group_tile, head_dim], dtype=tl.float32)
        for start in range(number * chunk, end, tile):
            key = start + tl.arange(0, tile)
            seen = key < end
            block = tl.load(tables + row * table_stride + key // page, mask=seen, other=0)
            slot = block.to(tl.int64) * page + key % page
            at = (slot * kv_heads + kv_head)[:, None] * head_dim + part[None, :]
            k = tl.load(keys + at, mask=seen[:, None], other=0.0).to(query.dtype)
            v = tl.load(values + at, mask=seen[:, None], other=0.0).to(query.dtype)
            scores = tl.dot(query, tl.trans(k), input_precision="ieee") * scale
            scores = tl.where(seen[None, :], scores, -float("inf"))
            higher = tl.maximum(top, tl.max(scores, axis=1))
            weights = tl.exp2(scores - higher[:, None])
            shrink = tl.exp2(top - higher)
            total = total * shrink + tl.sum(weights, axis=1)
            product = tl.dot(weights.to(query.dtype), v, input_precision="ieee")
            summed = summed * shrink[:, None] + product
            top = higher
        result = summed / total[:, None]
        if direct:
            place = out + head[:, None] * head_dim + part[None, :]
            tl.store(place, result.to(out.dtype.element_ty), mask=asked)
        else:
            place = head * num_chunks + number
            tl.store(out + place[:, None] * head_dim + part[None, :], result, mask=asked)
            tl.store(lse + place, top + tl.log2(total), mask=member < group)


@jit("num_chunks")
def _merge(
    partial: tl.tensor,
    lse: tl.tensor,
    contexts: tl.tensor,
    out: tl.tensor,
    num_chunks: tl.tensor,
    heads: tl.constexpr,
    head_dim: tl.constexpr,
    chunk: tl.constexpr,
    tile: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    head = row * heads + tl.program_id(1)
    chunks = tl.cdiv(tl.load(contexts + row), chunk)
    part = tl.arange(0, head_dim)
    top = tl.full([tile], -float("inf"), dtype=tl.float32)
    for start in range(0, chunks, tile):
        number = start + tl.arange(0, tile)
        value = tl.load(lse + head * num_chunks + number, mask=number < chunks, other=-float("inf"))
        top = tl.maximum(top, value)
    highest = tl.max(top, axis=0)
    total = tl.zeros([tile], dtype=tl.float32)
    summed = tl.zeros([head_dim], dtype=tl.float32)
    for start in range(0, chunks, tile):
        number = start + tl.arange(0, tile)
        real = number < chunks
        place = head * num_chunks + number
        weight = tl.exp2(tl.load(lse + place, mask=real, other=-float("inf")) - highest)
        total += weight
        at = place[:, None] * head_dim + part[None, :]
        value = tl.load(partial + at, mask=real[:, None], other=0.0)
        summed += tl.sum(value * weight[:, None], axis=0)
    # A row of padding has no chunks.
    result = summed / tl.where(chunks > 0, tl.sum(total, axis=0), 1.0)
    tl.store(out + head * head_dim + part, result.to(out.dtype.element_ty))


def programs_per_row(rows: int, kv_heads: int, chunks: int, multiprocessors: int) -> int:
    """Programs that share a row's chunks: enough to fill the device twice, if chunks allow."""
    wanted = -(-2 * multiprocessors // (rows * kv_heads))
    return max(1, min(wanted, chunks))


def paged_decode(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    block_tables: Tensor,
    context_lengths: Tensor,
    max_context: int,
) -> Tensor:
    """See the twin, which also serves head sizes that are no power of two or below 16."""
    if q.shape[2] < 16 or q.shape[2] != power_of_two(q.shape[2]):
        return twin(q, keys, values, block_tables, context_lengths, max_context)
    q = q.contiguous()
    rows, heads, head_dim = q.shape
    page, kv_heads = keys.shape[1:3]
    chunks = max(1, -(-max_context // CHUNK))
    # One chunk needs no merge, unless a row may be without context: then the merge writes zeros.
    out = torch.zeros_like(q) if chunks == 1 else torch.empty_like(q)
    partial, lse = out, out
    if chunks > 1:
        size = (rows, heads, chunks)
        partial = torch.empty((*size, head_dim), dtype=torch.float32, device=q.device)
        lse = torch.empty(size, dtype=torch.float32, device=q.device)
    group = heads // kv_heads
    split = programs_per_row(rows, kv_heads, chunks, multiprocessors(q.device))
    _chunks[(rows, kv_heads, split)](
        q,
        keys,
        values,
        block_tables,
        context_lengths,
        partial,
        lse,
        head_dim**-0.5 * LOG2_E,
        block_tables.stride(0),
        chunks,
        kv_heads=kv_heads,
        group=group,
        # The matrix unit takes at least 16 rows; the rows of padding cost no memory traffic.
        group_tile=max(16, power_of_two(group)),
        head_dim=head_dim,
        page=page,
        chunk=CHUNK,
        tile=KEY_TILE,
        direct=chunks == 1,
        # The interpreter multiplies the bits of bfloat16 as if they were integers.
        widened=INTERPRETED and q.dtype == torch.bfloat16,
        num_warps=4,
        # Three, so that the block numbers of the next tile are under way before its keys are.
        num_stages=3,
    )
    if chunks > 1:
        _merge[(rows, heads)](
            partial,
            lse,
            context_lengths,
            out,
            chunks,
            heads=heads,
            head_dim=head_dim,
            chunk=CHUNK,
            tile=MERGE_TILE,
            num_warps=4,
        )
    return out
