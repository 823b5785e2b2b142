"""Small models, batches and a naive decoder to compare with."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from reference_engine.model.batch import Batch
from reference_engine.model.config import ModelConfig
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.llama import Llama

BLOCK_SIZE = 4


def config(**changes: object) -> ModelConfig:
    """A two-layer model with 3 query heads to a KV head."""
    values: dict[str, object] = {
        "architecture": "LlamaForCausalLM",
        "vocab_size": 61,
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_layers": 2,
        "num_heads": 6,
        "num_kv_heads": 2,
        "head_dim": 8,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
        "eos_token_ids": (0,),
    }
    return ModelConfig(**{**values, **changes})  # type: ignore[arg-type]  # checked by the tests


def random_model(shape: ModelConfig, seed: int = 0) -> Llama:
    """A model with weights large enough for attention to matter."""
    torch.manual_seed(seed)
    model = Llama(shape).requires_grad_(requires_grad=False)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, mean=1.0 if parameter.dim() == 1 else 0.0, std=0.3)
    return model


def pack(
    rows: Sequence[Sequence[int]], starts: Sequence[int], tables: Sequence[Sequence[int]]
) -> Batch:
    """A batch of new tokens per row, row r starting at position starts[r]; logits of all tokens."""
    ids = [token for row in rows for token in row]
    positions = [s + i for row, s in zip(rows, starts, strict=True) for i in range(len(row))]
    owners = [table for row, table in zip(rows, tables, strict=True) for _ in row]
    slots = [
        table[position // BLOCK_SIZE] * BLOCK_SIZE + position % BLOCK_SIZE
        for table, position in zip(owners, positions, strict=True)
    ]
    width = max(map(len, tables))
    return Batch(
        token_ids=torch.tensor(ids),
        positions=torch.tensor(positions),
        slots=torch.tensor(slots),
        query_lengths=tuple(map(len, rows)),
        context_lengths=tuple(s + len(row) for row, s in zip(rows, starts, strict=True)),
        block_tables=torch.tensor([[*table, *[0] * (width - len(table))] for table in tables]),
        logit_rows=torch.arange(len(ids)),
    )


def blocks_for(length: int) -> int:
    return -(-length // BLOCK_SIZE)


def run_alone(model: Llama, ids: Sequence[int]) -> Tensor:
    """Logits of every position, the whole sequence in one step in an otherwise empty cache."""
    cache = KVCache.allocate(model.config, blocks_for(len(ids)), BLOCK_SIZE)
    logits: Tensor = model(pack([ids], [0], [range(blocks_for(len(ids)))]), cache)
    return logits


def naive_logits(model: Llama, ids: Sequence[int]) -> Tensor:
    """The same logits by loops in float64, written from the definition of the architecture."""
    shape = model.config
    weights = {name: value.double() for name, value in model.state_dict().items()}
    x = weights["model.embed_tokens.weight"][torch.tensor(ids)]
    for layer in range(shape.num_layers):
        w = {
            name.removeprefix(f"model.layers.{layer}."): value
            for name, value in weights.items()
            if name.startswith(f"model.layers.{layer}.")
        }
        x = x + _naive_attention(shape, w, _norm(x, w["input_layernorm.weight"], shape))
        h = _norm(x, w["post_attention_layernorm.weight"], shape)
        gate = h @ w["mlp.gate_proj.weight"].T
        up = h @ w["mlp.up_proj.weight"].T
        x = x + (gate / (1 + torch.exp(-gate)) * up) @ w["mlp.down_proj.weight"].T
    head = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    logits: Tensor = _norm(x, weights["model.norm.weight"], shape) @ head.T
    return logits


def _norm(x: Tensor, weight: Tensor, shape: ModelConfig) -> Tensor:
    scale = torch.sqrt((x * x).mean(-1, keepdim=True) + shape.rms_norm_eps)
    return x / scale * weight


def _naive_attention(shape: ModelConfig, w: dict[str, Tensor], h: Tensor) -> Tensor:
    q, k, v = (_naive_projection(w, part, h) for part in "qkv")
    size = shape.head_dim
    if shape.qk_norm:
        q, k = (
            _norm(x.unflatten(1, (-1, size)), w[f"self_attn.{name}_norm.weight"], shape).flatten(1)
            for name, x in (("q", q), ("k", k))
        )
    rows = []
    for i in range(len(h)):
        heads = []
        for head in range(shape.num_heads):
            shared = head // (shape.num_heads // shape.num_kv_heads)
            query = _rotated(shape, q[i, head * size : (head + 1) * size], i)
            columns = slice(shared * size, (shared + 1) * size)
            scores = torch.stack(
                [query @ _rotated(shape, k[j, columns], j) / math.sqrt(size) for j in range(i + 1)]
            )
            heads.append(torch.softmax(scores, 0) @ v[: i + 1, columns])
        rows.append(torch.cat(heads))
    return _naive_projection(w, "o", torch.stack(rows))


def _naive_projection(w: dict[str, Tensor], part: str, x: Tensor) -> Tensor:
    out = x @ w[f"self_attn.{part}_proj.weight"].T
    return out + w.get(f"self_attn.{part}_proj.bias", torch.zeros(()))


def _rotated(shape: ModelConfig, x: Tensor, position: int) -> Tensor:
    half = shape.head_dim // 2
    out = x.clone()
    for i in range(half):
        angle = position * shape.rope_theta ** (-2 * i / shape.head_dim)
        cos, sin = math.cos(angle), math.sin(angle)
        out[i] = x[i] * cos - x[i + half] * sin
        out[i + half] = x[i + half] * cos + x[i] * sin
    return out
