"""The paged KV cache: one tensor of keys and one of values for all layers."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from reference_engine.model.config import ModelConfig


@dataclass(frozen=True, slots=True)
class FlatLayer:
    """Keys or values of one layer on a CPU, as they are written and as they are read."""

    tokens: Tensor
    """[blocks * kv_heads * block_size, head_dim]"""
    blocks: Tensor
    """[blocks * kv_heads, block_size * head_dim]"""

    @classmethod
    def of(cls, cached: Tensor) -> "FlatLayer":
        """Of [blocks, kv_heads, block_size, head_dim], contiguous."""
        return cls(cached.flatten(0, 2), cached.flatten(0, 1).flatten(1))


@dataclass(frozen=True, slots=True)
class KVCache:
    """Keys and values, each [layers, blocks, block_size, kv_heads, head_dim]; written in place.

    On a CPU they are views: the tokens of one head of a block lie together in memory, so that
    attention gathers them by copying 4 KiB instead of 256 B at a time, in half the time.
    """

    keys: Tensor
    values: Tensor
    flat: tuple[tuple[FlatLayer, FlatLayer], ...] = field(init=False)
    """Keys and values of each layer, none unless they lie in memory as said for a CPU."""

    def __post_init__(self) -> None:
        """Make the views once, not for each layer in each step."""
        parts = self.keys.transpose(2, 3), self.values.transpose(2, 3)
        flat = all(part.is_contiguous() for part in parts)
        layers = zip(*parts, strict=True) if flat else ()
        views = tuple((FlatLayer.of(keys), FlatLayer.of(values)) for keys, values in layers)
        object.__setattr__(self, "flat", views)

    @classmethod
    def allocate(
        cls,
        config: ModelConfig,
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | None = None,
    ) -> "KVCache":
        """A zeroed cache of num_blocks * block_size token slots.

        Zeros, not empty memory: attention multiplies unused slots by a weight of 0, and 0 * NaN
        is NaN.
        """
        if num_blocks < 1 or block_size < 1:
            raise ValueError(
                f"num_blocks and block_size must be at least 1, got {num_blocks} and {block_size}"
            )
        layers, heads, size = config.num_layers, config.num_kv_heads, config.head_dim
        if torch.device(device or "cpu").type != "cpu":
            shape = (layers, num_blocks, block_size, heads, size)
            keys, values = (torch.zeros(shape, dtype=dtype, device=device) for _ in range(2))
        else:
            shape = (layers, num_blocks, heads, block_size, size)
            keys, values = (torch.zeros(shape, dtype=dtype).transpose(2, 3) for _ in range(2))
        return cls(keys, values)

    @property
    def device(self) -> torch.device:
        """Where it lies, which is where the model must lie too."""
        return self.keys.device

    @property
    def num_blocks(self) -> int:
        """Blocks in the cache."""
        return self.keys.shape[1]

    @property
    def block_size(self) -> int:
        """Token slots in a block."""
        return self.keys.shape[2]
