"""Rotary positions and the store into the paged cache: one program a token, all its heads."""

import torch
import triton.language as tl
from torch import Tensor

from reference_engine.kernels.gpu.jit import jit, power_of_two


@jit()
def _rope_store(
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    slots: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    out: tl.tensor,
    q_stride: tl.tensor,
    k_stride: tl.tensor,
    v_stride: tl.tensor,
    heads: tl.constexpr,
    kv_heads: tl.constexpr,
    half: tl.constexpr,
    q_tile: tl.constexpr,
    kv_tile: tl.constexpr,
    half_tile: tl.constexpr,
) -> None:
    token = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, half_tile)
    c = tl.load(cos + token * half + part, mask=part < half, other=0.0)[None, :]
    s = tl.load(sin + token * half + part, mask=part < half, other=0.0)[None, :]

    head = tl.arange(0, q_tile)[:, None]
    inside = (head < heads) & (part < half)[None, :]
    at = head * (2 * half) + part[None, :]
    first = tl.load(q + token * q_stride + at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(q + token * q_stride + half + at, mask=inside, other=0.0).to(tl.float32)
    row = out + token * (heads * 2 * half)
    tl.store(row + at, (first * c - second * s).to(out.dtype.element_ty), mask=inside)
    tl.store(row + half + at, (second * c + first * s).to(out.dtype.element_ty), mask=inside)

    slot = tl.load(slots + token).to(tl.int64)
    if slot >= 0:
        kv_head = tl.arange(0, kv_tile)[:, None]
        stored = (kv_head < kv_heads) & (part < half)[None, :]
        place = kv_head * (2 * half) + part[None, :]
        low = tl.load(k + token * k_stride + place, mask=stored, other=0.0).to(tl.float32)
        high = tl.load(k + token * k_stride + half + place, mask=stored, other=0.0).to(tl.float32)
        cell = keys + slot * (kv_heads * 2 * half)
        tl.store(cell + place, (low * c - high * s).to(keys.dtype.element_ty), mask=stored)
        tl.store(cell + half + place, (high * c + low * s).to(keys.dtype.element_ty), mask=stored)
        low = tl.load(v + token * v_stride + place, mask=stored, other=0.0)
        high = tl.load(v + token * v_stride + half + place, mask=stored, other=0.0)
        cell = values + slot * (kv_heads * 2 * half)
        tl.store(cell + place, low.to(values.dtype.element_ty), mask=stored)
        tl.store(cell + half + place, high.to(values.dtype.element_ty), mask=stored)


def rope_store(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cos: Tensor,
    sin: Tensor,
    slots: Tensor,
    keys: Tensor,
    values: Tensor,
) -> Tensor:
    """See the twin. The heads of a token must lie side by side, as a projection leaves them."""
    heads, head_dim = q.shape[1:]
    kv_heads = k.shape[1]
    out = torch.empty(q.shape, dtype=keys.dtype, device=q.device)
    _rope_store[(q.shape[0],)](
        q,
        k,
        v,
        cos,
        sin,
        slots,
        keys,
        values,
        out,
        q.stride(0),
        k.stride(0),
        v.stride(0),
        heads=heads,
        kv_heads=kv_heads,
        half=head_dim // 2,
        q_tile=power_of_two(heads),
        kv_tile=power_of_two(kv_heads),
        half_tile=power_of_two(head_dim // 2),
        num_warps=4,
    )
    return out
