"""RMSNorm with and without the residual addition: one program a row, the row in registers."""

import torch
import triton.language as tl
from torch import Tensor

from reference_engine.kernels.gpu.jit import jit, power_of_two, warps


@jit()
def _rms_norm(
    x: tl.tensor,
    delta: tl.tensor,
    weight: tl.tensor,
    total: tl.tensor,
    out: tl.tensor,
    size: tl.tensor,
    eps: tl.tensor,
    has_delta: tl.constexpr,
    tile: tl.constexpr,
) -> None:
    start = tl.program_id(0).to(tl.int64) * size
    at = tl.arange(0, tile)
    inside = at < size
    value = tl.load(x + start + at, mask=inside, other=0.0).to(tl.float32)
    if has_delta:
        value += tl.load(delta + start + at, mask=inside, other=0.0).to(tl.float32)
        rounded = value.to(total.dtype.element_ty)
        tl.store(total + start + at, rounded, mask=inside)
        value = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / size + eps)
    factor = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + start + at, (value * scale * factor).to(out.dtype.element_ty), mask=inside)


def rms_norm(x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype | None = None) -> Tensor:
    """See the twin."""
    x = x.contiguous()
    out = torch.empty_like(x, dtype=dtype)
    size = x.shape[-1]
    tile = power_of_two(size)
    grid = (x.numel() // size,)
    _rms_norm[grid](
        x, x, weight, out, out, size, eps, has_delta=False, tile=tile, num_warps=warps(tile)
    )
    return out


def add_rms_norm(
    x: Tensor, delta: Tensor, weight: Tensor, eps: float, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """See the twin."""
    x, delta = x.contiguous(), delta.contiguous()
    total = torch.empty_like(x, dtype=torch.promote_types(x.dtype, delta.dtype))
    out = torch.empty_like(total, dtype=dtype)
    size = x.shape[-1]
    tile = power_of_two(size)
    grid = (x.numel() // size,)
    _rms_norm[grid](
        x, delta, weight, total, out, size, eps, has_delta=True, tile=tile, num_warps=warps(tile)
    )
    return out, total
