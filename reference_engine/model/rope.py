"""Frequencies of the rotary positions, plain and scaled for contexts longer than trained."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class LinearScaling:
    """Positions are divided by a factor."""

    factor: float


@dataclass(frozen=True, slots=True)
class Llama3Scaling:
    """Llama 3.1: slow components are divided by `factor`, fast ones stay, a ramp in between.

    A component is fast if it turns more than `high_freq_factor` times within
    `original_max_position` tokens, slow if less than `low_freq_factor` times.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position: int


@dataclass(frozen=True, slots=True)
class DividedBy:
    """Every component is divided by a number of its own, head_dim / 2 of them (GGUF)."""

    divisors: tuple[float, ...]


RopeScaling = LinearScaling | Llama3Scaling | DividedBy


def frequencies(theta: float, head_dim: int, scaling: RopeScaling | None = None) -> Tensor:
    """Radians per position of the pairs of components, float32 [head_dim / 2] on the CPU."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32, device="cpu") / head_dim
    plain = 1.0 / theta**exponents
    match scaling:
        case None:
            return plain
        case LinearScaling(factor):
            return plain / factor
        case DividedBy(divisors):
            return plain / torch.tensor(divisors, dtype=torch.float32, device="cpu")
        case Llama3Scaling():
            return _llama3(plain, scaling)


def _llama3(plain: Tensor, scaling: Llama3Scaling) -> Tensor:
    turns = scaling.original_max_position * plain / (2 * math.pi)
    span = scaling.high_freq_factor - scaling.low_freq_factor
    kept = ((turns - scaling.low_freq_factor) / span).clamp(0, 1)
    return plain / scaling.factor * (1 - kept) + plain * kept
