"""The parts of a Llama decoder, named as Hugging Face checkpoints name their weights."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference_engine.model.config import ModelConfig

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, q [n, heads, head_dim], k and v [n, kv_heads, head_dim]) -> like q."""


class RMSNorm(nn.Module):
    """Scale every row to a root mean square of 1, then by a learned weight."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """X [..., size] -> the same shape."""
        return functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotary(config: ModelConfig, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines [n, 1, head_dim / 2] of the rotation at each of the n positions."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    angles = positions.to(torch.float32)[:, None, None] * config.rope_theta**-exponents
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate x [n, heads, head_dim]; component i is paired with component i + head_dim / 2."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class SelfAttention(nn.Module):
    """Projections around an attention that the caller supplies (paged, or dense in training)."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.head_dim = config.head_dim
        queries = config.num_heads * config.head_dim
        keys = config.num_kv_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, queries, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.o_proj = nn.Linear(queries, config.hidden_size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        """X [n, hidden] -> [n, hidden]."""
        q = self.q_proj(x).unflatten(-1, (-1, self.head_dim))
        k = self.k_proj(x).unflatten(-1, (-1, self.head_dim))
        v = self.v_proj(x).unflatten(-1, (-1, self.head_dim))
        out = attend(self.layer, rotate(q, cos, sin), rotate(k, cos, sin), v)
        return torch.as_tensor(self.o_proj(out.flatten(1)))


class MLP(nn.Module):
    """SwiGLU: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """X [n, hidden] -> [n, hidden]."""
        return torch.as_tensor(self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x)))


class DecoderLayer(nn.Module):
    """Attention and MLP, each behind a norm and added to the residual stream."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = SelfAttention(config, layer)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        """X [n, hidden] -> [n, hidden]."""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, attend)
        return torch.as_tensor(x + self.mlp(self.post_attention_layernorm(x)))
