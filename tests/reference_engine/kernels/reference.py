"""Every kernel in float64 and in the plainest loops, as what both implementations must equal."""

import math

import torch
from torch import Tensor

from reference_engine.kernels.logits import Penalties


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Over the last dimension."""
    x = x.double()
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * weight.double()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As a product of complex numbers."""
    half = x.shape[-1] // 2
    x = x.double()
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.complex(cos.double(), sin.double())
    return torch.cat((turned.real, turned.imag), -1)


def silu_mul(gate: Tensor, up: Tensor) -> Tensor:
    """Elementwise."""
    gate = gate.double()
    return gate / (1 + torch.exp(-gate)) * up.double()


def paged_decode(
    q: Tensor, keys: Tensor, values: Tensor, tables: Tensor, contexts: Tensor
) -> Tensor:
    """Row by row, head by head, key by key."""
    rows, heads, head_dim = q.shape
    page, kv_heads = keys.shape[1:3]
    out = torch.zeros(q.shape, dtype=torch.float64)
    for row in range(rows):
        slots = [(int(tables[row, at // page]), at % page) for at in range(int(contexts[row]))]
        for head in range(heads):
            if not slots:
                continue
            kv_head = head // (heads // kv_heads)
            k = torch.stack([keys[block, offset, kv_head] for block, offset in slots]).double()
            v = torch.stack([values[block, offset, kv_head] for block, offset in slots]).double()
            scores = k @ q[row, head].double() / math.sqrt(head_dim)
            out[row, head] = torch.softmax(scores, 0) @ v
    return out


def process_logits(
    logits: Tensor, temperature: Tensor, penalties: Penalties | None, bitmask: Tensor | None
) -> Tensor:
    """Token by token; the result, not in place."""
    out = logits.double().clone()
    if penalties is not None:
        entries = zip(
            penalties.rows.tolist(),
            penalties.tokens.tolist(),
            penalties.counts.tolist(),
            strict=True,
        )
        for row, token, count in entries:
            value = float(out[row, token])
            repetition = float(penalties.repetition[row])
            value = value / repetition if value > 0 else value * repetition
            value -= float(penalties.frequency[row]) * count
            value -= float(penalties.presence[row]) if count else 0.0
            out[row, token] = value
    for row in range(out.shape[0]):
        for token in range(out.shape[1]):
            if bitmask is not None and not (int(bitmask[row, token // 32]) >> (token % 32)) & 1:
                out[row, token] = -torch.inf
        if temperature[row] > 0:
            out[row] /= float(temperature[row])
    return out


def lora_shrink(x: Tensor, down: Tensor, adapters: Tensor) -> Tensor:
    """Row by row."""
    out = torch.zeros(x.shape[0], down.shape[1], dtype=torch.float64)
    for row, adapter in enumerate(adapters.tolist()):
        if adapter >= 0:
            out[row] = down[adapter].double() @ x[row].double()
    return out


def lora_expand(out: Tensor, h: Tensor, up: Tensor, scales: Tensor, adapters: Tensor) -> Tensor:
    """Row by row; the result, not in place."""
    out = out.double().clone()
    for row, adapter in enumerate(adapters.tolist()):
        if adapter >= 0:
            out[row] += scales[adapter].double() * (up[adapter].double() @ h[row].double())
    return out
