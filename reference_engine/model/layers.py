"""The parts of a Llama decoder, named as Hugging Face checkpoints name their weights."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reference_engine.kernels.dispatch import kernels_for
from reference_engine.model.adapters import AdapterHook
from reference_engine.model.config import ModelConfig
from reference_engine.model.linear import Linear, Projections

Attend = Callable[[int, Tensor, Tensor, Tensor, Tensor], Tensor]
"""(layer, qk [n, heads + kv_heads, head_dim], v [n, kv_heads, head_dim], cos, sin) -> [n, heads,
head_dim]. The queries and behind them the keys come without their rotation, which a GPU does
together with the store into the cache, and a CPU for both at once.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """What the layers share in one step besides the residual stream."""

    cos: Tensor
    sin: Tensor
    attend: Attend
    adapters: AdapterHook | None


class RMSNorm(nn.Module):
    """Scale every row to a root mean square of 1, then by a learned weight."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps
        self.dtype: torch.dtype | None = None
        """Of the result, None for that of the input."""

    def forward(self, x: Tensor) -> Tensor:
        """X [..., size] -> the same shape."""
        return kernels_for(x.device).rms_norm(x, self.weight, self.eps, self.dtype)

    def after_adding(self, x: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        """The norm of x + delta, and x + delta itself; all [n, size]."""
        return kernels_for(x.device).add_rms_norm(x, delta, self.weight, self.eps, self.dtype)


def rotary(frequencies: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines [n, 1, head_dim / 2] of the rotation at each of the n positions.

    frequencies [head_dim / 2], radians per position.
    """
    angles = positions.to(torch.float32)[:, None, None] * frequencies
    return angles.cos(), angles.sin()


class SelfAttention(nn.Module):
    """Projections around an attention that the caller supplies (paged, or dense in training)."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.head_dim = config.head_dim
        queries = config.num_heads * config.head_dim
        keys = config.num_kv_heads * config.head_dim
        self.q_proj = Linear(config.hidden_size, queries, bias=config.qkv_bias)
        self.k_proj = Linear(config.hidden_size, keys, bias=config.qkv_bias)
        self.v_proj = Linear(config.hidden_size, keys, bias=config.qkv_bias)
        self.o_proj = Linear(queries, config.hidden_size, bias=config.output_bias)
        self.normed = config.qk_norm
        if self.normed:
            self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps)
            self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps)
        self.heads = (config.num_heads, config.num_kv_heads)
        self.inputs = Projections(self.q_proj, self.k_proj, self.v_proj)
        self.output = Projections(self.o_proj)

    def forward(self, x: Tensor, step: Step) -> Tensor:
        """X [n, hidden] -> [n, hidden]."""
        qkv = self.inputs(x, step.adapters).view(len(x), -1, self.head_dim)
        qk, v = qkv[:, : sum(self.heads)], qkv[:, sum(self.heads) :]
        if self.normed:
            q, k = qk.split_with_sizes(self.heads, dim=1)
            qk = torch.cat((self.q_norm(q), self.k_norm(k)), dim=1)
        attended = step.attend(self.layer, qk, v, step.cos, step.sin)
        return self.output(attended.flatten(1), step.adapters)


class MLP(nn.Module):
    """SwiGLU: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size)
        self.inputs = Projections(self.gate_proj, self.up_proj)
        self.output = Projections(self.down_proj)

    def forward(self, x: Tensor, step: Step) -> Tensor:
        """X [n, hidden] -> [n, hidden]."""
        gate, up = self.inputs(x, step.adapters).chunk(2, dim=-1)
        return self.output(kernels_for(gate.device).silu_mul(gate, up), step.adapters)


class DecoderLayer(nn.Module):
    """Attention and MLP, each behind a norm and added to the residual stream."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = SelfAttention(config, layer)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)

    def norm_to(self, dtype: torch.dtype) -> None:
        """Let the norms' kernels convert in passing what a GPU's products would convert again."""
        self.input_layernorm.dtype = self.post_attention_layernorm.dtype = dtype

    @property
    def projections(self) -> tuple[Projections, ...]:
        """The four products of a layer."""
        return (self.self_attn.inputs, self.self_attn.output, self.mlp.inputs, self.mlp.output)

    def forward(self, x: Tensor, step: Step) -> Tensor:
        """X [n, hidden] -> [n, hidden]."""
        delta = self.self_attn(self.input_layernorm(x), step)
        normed, x = self.post_attention_layernorm.after_adding(x, delta)
        return torch.as_tensor(x + self.mlp(normed, step))
