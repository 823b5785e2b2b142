"""The gate of SwiGLU, elementwise in float32 registers."""

import torch
import triton.language as tl
from torch import Tensor

from reference_engine.kernels.gpu.jit import jit

TILE = 1024


@jit()
def _silu_mul(
    gate: tl.tensor,
    up: tl.tensor,
    out: tl.tensor,
    size: tl.tensor,
    gate_stride: tl.tensor,
    up_stride: tl.tensor,
    tile: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * tile + tl.arange(0, tile)
    inside = at < size
    g = tl.load(gate + row * gate_stride + at, mask=inside, other=0.0).to(tl.float32)
    u = tl.load(up + row * up_stride + at, mask=inside, other=0.0).to(tl.float32)
    value = g / (1.0 + tl.exp(-g)) * u
    tl.store(out + row * size + at, value.to(out.dtype.element_ty), mask=inside)


def silu_mul(gate: Tensor, up: Tensor) -> Tensor:
    """See the twin; both may be parts of wider rows, as a joint projection leaves them."""
    rows, size = gate.shape
    out = torch.empty((rows, size), dtype=gate.dtype, device=gate.device)
    _silu_mul[(rows, -(-size // TILE))](
        gate, up, out, size, gate.stride(0), up.stride(0), tile=TILE, num_warps=4
    )
    return out
