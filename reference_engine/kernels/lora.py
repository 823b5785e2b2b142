"""The low-rank products of adapters, for rows that each have their own adapter or none."""

import torch
from torch import Tensor


def lora_shrink(x: Tensor, down: Tensor, adapters: Tensor) -> Tensor:
    """X [n, size_in] by down [adapters, rank, size_in] of each row's adapter: float32 [n, rank].

    adapters int32 [n]; a row with -1 has none and gets zeros.
    """
    out = x.new_zeros((x.shape[0], down.shape[1]), dtype=torch.float32)
    for adapter in sorted(set(adapters.tolist())):
        if adapter >= 0:
            rows = (adapters == adapter).nonzero()[:, 0]
            out[rows] = x[rows].float() @ down[adapter].float().T
    return out


def lora_expand(out: Tensor, h: Tensor, up: Tensor, scales: Tensor, adapters: Tensor) -> None:
    """Add scales[adapter] * h @ up[adapter].T to out [n, size_out] in place.

    h float32 [n, rank], up [adapters, size_out, rank], scales float32 [adapters], adapters int32
    [n]; a row with -1 is left alone.
    """
    for adapter in sorted(set(adapters.tolist())):
        if adapter >= 0:
            rows = (adapters == adapter).nonzero()[:, 0]
            added = (h[rows] @ up[adapter].float().T) * scales[adapter]
            out[rows] = (out[rows].float() + added).to(out.dtype)
