"""Which kernels a device gets: the torch twins, or Triton's on a CUDA device that has Triton."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from reference_engine.kernels.logits import process_logits
from reference_engine.kernels.lora import lora_expand, lora_shrink
from reference_engine.kernels.paged_decode import paged_decode
from reference_engine.kernels.rms_norm import add_rms_norm, rms_norm
from reference_engine.kernels.rope_store import rope_store
from reference_engine.kernels.silu_mul import silu_mul


@dataclass(frozen=True, slots=True)
class Kernels:
    """One implementation of every kernel; the twins' docstrings say what each does."""

    name: str
    """`torch` or `triton`."""
    rms_norm: Callable[..., Tensor]
    add_rms_norm: Callable[..., tuple[Tensor, Tensor]]
    rope_store: Callable[..., Tensor]
    paged_decode: Callable[..., Tensor]
    silu_mul: Callable[..., Tensor]
    process_logits: Callable[..., None]
    lora_shrink: Callable[..., Tensor]
    lora_expand: Callable[..., None]


TORCH = Kernels(
    "torch",
    rms_norm,
    add_rms_norm,
    rope_store,
    paged_decode,
    silu_mul,
    process_logits,
    lora_shrink,
    lora_expand,
)


def kernels_for(device: torch.device) -> Kernels:
    """The kernels for tensors on this device."""
    return cuda_kernels() if device.type == "cuda" else TORCH


@cache
def cuda_kernels() -> Kernels:
    """Triton's kernels, or the twins if Triton isn't installed."""
    if importlib.util.find_spec("triton") is None:
        return TORCH
    return triton_kernels()


@cache
def triton_kernels() -> Kernels:
    """Triton's kernels. ImportError without Triton, which CPU machines need not have."""
    from reference_engine.kernels import gpu  # noqa: PLC0415  # half a second to import

    return Kernels(
        "triton",
        gpu.rms_norm,
        gpu.add_rms_norm,
        gpu.rope_store,
        gpu.paged_decode,
        gpu.silu_mul,
        gpu.process_logits,
        gpu.lora_shrink,
        gpu.lora_expand,
    )
