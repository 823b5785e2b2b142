"""The gate of SwiGLU."""

from torch import Tensor
from torch.nn import functional


def silu_mul(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, elementwise; both [n, size] and of one type, which the result has."""
    return functional.silu(gate) * up
