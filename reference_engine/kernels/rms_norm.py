"""RMSNorm, alone or on top of the residual addition."""

import torch
from torch import Tensor
from torch.nn import functional


def rms_norm(x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype | None = None) -> Tensor:
    """X [..., size] scaled to a root mean square of 1, times weight [size]; like x.

    dtype: of the result, None for that of x.
    """
    out = functional.rms_norm(x, weight.shape, weight.to(x.dtype), eps)
    return out if dtype is None else out.to(dtype)


def add_rms_norm(
    x: Tensor, delta: Tensor, weight: Tensor, eps: float, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """The norm of x + delta, and x + delta itself; both [n, size], the sum in the wider type."""
    total = x + delta
    return rms_norm(total, weight, eps, dtype), total
