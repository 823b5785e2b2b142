"""The low-rank products of adapters: every row multiplies by the matrices of its own adapter.

Decode batches are small and adapters many, so each program reads what its row needs; rows of one
adapter meet in the L2 cache.
"""

import torch
import triton.language as tl
from torch import Tensor

from reference_engine.kernels.gpu.jit import jit, power_of_two

IN_TILE = 256
OUT_TILE = 128


@jit()
def _shrink(
    x: tl.tensor,
    down: tl.tensor,
    adapters: tl.tensor,
    out: tl.tensor,
    size_in: tl.tensor,
    rank: tl.constexpr,
    rank_tile: tl.constexpr,
    in_tile: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    adapter = tl.load(adapters + row).to(tl.int64)
    r = tl.arange(0, rank_tile)
    total = tl.zeros([rank_tile], dtype=tl.float32)
    if adapter >= 0:
        matrix = down + adapter * rank * size_in
        for start in range(0, size_in, in_tile):
            at = start + tl.arange(0, in_tile)
            value = tl.load(x + row * size_in + at, mask=at < size_in, other=0.0).to(tl.float32)
            inside = (r < rank)[:, None] & (at < size_in)[None, :]
            part = tl.load(matrix + r[:, None] * size_in + at[None, :], mask=inside, other=0.0)
            total += tl.sum(part.to(tl.float32) * value[None, :], axis=1)
    tl.store(out + row * rank + r, total, mask=r < rank)


@jit()
def _expand(
    out: tl.tensor,
    h: tl.tensor,
    up: tl.tensor,
    scales: tl.tensor,
    adapters: tl.tensor,
    size_out: tl.tensor,
    rank: tl.constexpr,
    rank_tile: tl.constexpr,
    out_tile: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    adapter = tl.load(adapters + row).to(tl.int64)
    if adapter >= 0:
        r = tl.arange(0, rank_tile)
        at = tl.program_id(1) * out_tile + tl.arange(0, out_tile)
        value = tl.load(h + row * rank + r, mask=r < rank, other=0.0)
        inside = (at < size_out)[:, None] & (r < rank)[None, :]
        matrix = up + adapter * size_out * rank
        part = tl.load(matrix + at[:, None] * rank + r[None, :], mask=inside, other=0.0)
        added = tl.sum(part.to(tl.float32) * value[None, :], axis=1) * tl.load(scales + adapter)
        place = out + row * size_out + at
        before = tl.load(place, mask=at < size_out, other=0.0).to(tl.float32)
        tl.store(place, (before + added).to(out.dtype.element_ty), mask=at < size_out)


def lora_shrink(x: Tensor, down: Tensor, adapters: Tensor) -> Tensor:
    """See the twin."""
    x = x.contiguous()
    rank, size_in = down.shape[1:]
    out = torch.empty((x.shape[0], rank), dtype=torch.float32, device=x.device)
    _shrink[(x.shape[0],)](
        x,
        down,
        adapters,
        out,
        size_in,
        rank=rank,
        rank_tile=power_of_two(rank),
        in_tile=IN_TILE,
        num_warps=8,
    )
    return out


def lora_expand(out: Tensor, h: Tensor, up: Tensor, scales: Tensor, adapters: Tensor) -> None:
    """See the twin; out must be contiguous."""
    size_out, rank = up.shape[1:]
    _expand[(out.shape[0], -(-size_out // OUT_TILE))](
        out,
        h,
        up,
        scales,
        adapters,
        size_out,
        rank=rank,
        rank_tile=power_of_two(rank),
        out_tile=OUT_TILE,
        num_warps=4,
    )
