"""Writes small GGUF files."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from reference_engine.model.byte_tokens import byte_alphabet
from reference_engine.model.llama import Llama

F32 = 0
ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as it goes into the file."""

    shape: tuple[int, ...]
    kind: int
    data: bytes


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(item: object) -> bytes:
    """Type number and content of a metadata value."""
    match item:
        case bool():
            return struct.pack("<IB", 7, item)
        case int():
            return struct.pack("<II", 4, item)
        case float():
            return struct.pack("<If", 6, item)
        case str():
            return struct.pack("<I", 8) + string(item)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(item)) + b"".join(
                string(str(text)) for text in item
            )
        case list():
            return struct.pack("<IIQ", 9, 5, len(item)) + struct.pack(f"<{len(item)}i", *item)
    raise TypeError(f"no GGUF type for {item!r}")


def write_gguf(path: Path, metadata: Mapping[str, object], tensors: Mapping[str, Stored]) -> Path:
    """Write version 3 of the format."""
    header = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    header += [string(name) + value(item) for name, item in metadata.items()]
    body = b""
    for name, stored in tensors.items():
        dimensions = stored.shape[::-1]
        header.append(string(name) + struct.pack("<I", len(dimensions)))
        header.append(struct.pack(f"<{len(dimensions)}QIQ", *dimensions, stored.kind, len(body)))
        body += stored.data + b"\0" * (-len(stored.data) % ALIGNMENT)
    head = b"".join(header)
    path.write_bytes(head + b"\0" * (-len(head) % ALIGNMENT) + body)
    return path


def floats(tensor: Tensor) -> Stored:
    return Stored(tuple(tensor.shape), F32, tensor.contiguous().numpy().tobytes())


SPECIAL = ["<|endoftext|>", "<|im_end|>"]


def vocabulary() -> list[str]:
    """Two special tokens, the 256 bytes and one merge."""
    return [*SPECIAL, *byte_alphabet(), "he"]


def llama_metadata(model: Llama) -> dict[str, object]:
    """What describes a model and a byte-level tokenizer."""
    shape, tokens = model.config, vocabulary()
    return {
        "general.architecture": "llama",
        "llama.embedding_length": shape.hidden_size,
        "llama.feed_forward_length": shape.intermediate_size,
        "llama.block_count": shape.num_layers,
        "llama.attention.head_count": shape.num_heads,
        "llama.attention.head_count_kv": shape.num_kv_heads,
        "llama.attention.key_length": shape.head_dim,
        "llama.attention.layer_norm_rms_epsilon": shape.rms_norm_eps,
        "llama.rope.freq_base": shape.rope_theta,
        "llama.context_length": shape.max_position_embeddings,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL)),
        "tokenizer.ggml.merges": ["h e"],
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.eot_token_id": 0,
        "tokenizer.chat_template": "{{ eos_token }}{{ messages[0].content }}",
    }


def permute(weight: Tensor, heads: int) -> Tensor:
    """The row order of GGUF, written out: row i of each half goes next to its partner."""
    size = weight.shape[0] // heads
    rows = []
    for head in range(heads):
        for i in range(size // 2):
            rows += [weight[head * size + i], weight[head * size + size // 2 + i]]
    return torch.stack(rows)


def llama_tensors(model: Llama, store: Callable[[Tensor], Stored] = floats) -> dict[str, Stored]:
    """The weights under the names of GGUF; matrices stored by `store`, norms as F32."""
    weights, shape = model.state_dict(), model.config
    names: Sequence[tuple[str, str]] = [
        ("attn_norm", "input_layernorm"),
        ("attn_q", "self_attn.q_proj"),
        ("attn_k", "self_attn.k_proj"),
        ("attn_v", "self_attn.v_proj"),
        ("attn_output", "self_attn.o_proj"),
        ("ffn_norm", "post_attention_layernorm"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", "mlp.up_proj"),
        ("ffn_down", "mlp.down_proj"),
    ]
    heads = {"attn_q": shape.num_heads, "attn_k": shape.num_kv_heads}
    found = {
        "token_embd.weight": store(weights["model.embed_tokens.weight"]),
        "output_norm.weight": floats(weights["model.norm.weight"]),
    }
    if not shape.tie_word_embeddings:
        found["output.weight"] = store(weights["lm_head.weight"])
    for layer in range(shape.num_layers):
        for ours, theirs in names:
            weight = weights[f"model.layers.{layer}.{theirs}.weight"]
            if ours in heads:
                weight = permute(weight, heads[ours])
            found[f"blk.{layer}.{ours}.weight"] = (
                floats(weight) if weight.dim() == 1 else store(weight)
            )
    return found
