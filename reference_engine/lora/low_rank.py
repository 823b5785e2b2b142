"""The weights of an adapter: two thin matrices for each projection that it changes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reference_engine.model.config import ModelConfig


@dataclass(frozen=True, slots=True)
class LowRank:
    """Adds scale * x @ down.T @ up.T; down float32 [rank, in], up float32 [out, rank]."""

    down: Tensor
    up: Tensor
    scale: float

    @property
    def rank(self) -> int:
        """Size between the matrices."""
        return self.down.shape[0]


AdapterWeights = Mapping[str, LowRank]
"""By path of the projection in the model, such as `model.layers.0.self_attn.q_proj`."""

Arrays = Mapping[str, tuple[NDArray[np.float32], NDArray[np.float32], float]]
"""The same as data that goes to another process by value: down, up and scale."""

Shapes = Mapping[str, tuple[int, int]]
"""Inputs and outputs of projections by path."""


def to_arrays(weights: AdapterWeights) -> Arrays:
    """The weights as numpy arrays, which share their memory."""
    return {name: (one.down.numpy(), one.up.numpy(), one.scale) for name, one in weights.items()}


def from_arrays(arrays: Arrays) -> AdapterWeights:
    """The weights again."""
    return {
        name: LowRank(torch.from_numpy(down), torch.from_numpy(up), scale)
        for name, (down, up, scale) in arrays.items()
    }


def projection_shapes(model: ModelConfig) -> Shapes:
    """The projections that adapters can change: seven in each layer."""
    hidden, inner = model.hidden_size, model.intermediate_size
    queries, keys = model.num_heads * model.head_dim, model.num_kv_heads * model.head_dim
    parts = {
        "self_attn.q_proj": (hidden, queries),
        "self_attn.k_proj": (hidden, keys),
        "self_attn.v_proj": (hidden, keys),
        "self_attn.o_proj": (queries, hidden),
        "mlp.gate_proj": (hidden, inner),
        "mlp.up_proj": (hidden, inner),
        "mlp.down_proj": (inner, hidden),
    }
    return {
        f"model.layers.{layer}.{part}": shape
        for layer in range(model.num_layers)
        for part, shape in parts.items()
    }
