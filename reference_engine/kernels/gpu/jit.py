"""`triton.jit` with a type, and the few numbers that all launches need."""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import triton

H200_MULTIPROCESSORS = 132
"""Stands in where there is no GPU to ask: in the interpreter and in compile checks."""
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether kernels run in Triton's interpreter; it is decided where a kernel is defined."""


def jit(*unspecialised: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile the decorated kernel at its first launch, `kernel[grid](...)`.

    unspecialised: whole-number arguments that change from step to step. Triton compiles anew (a
    second) when one of the others turns 1 or becomes a multiple of 16.
    """
    decorate: Callable[[Callable[..., Any]], Any] = triton.jit(do_not_specialize=unspecialised)
    return decorate


@cache
def multiprocessors(device: torch.device) -> int:
    """How many blocks of threads the device runs at once, at one for each multiprocessor."""
    if device.type != "cuda":
        return H200_MULTIPROCESSORS
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def power_of_two(count: int) -> int:
    """The smallest power of two that is at least `count`; the sizes that Triton's tiles have."""
    return 1 << (count - 1).bit_length()


def warps(elements: int) -> int:
    """Warps for a tile: 8 elements a thread where it is large, never more than 16 warps."""
    return min(max(elements // 256, 1), 16)
