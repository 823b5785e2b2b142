"""Loads a Llama from a GGUF file: configuration, weights and tokenizer are all in it."""

import re
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from reference_engine.errors import CheckpointError, UnsupportedModelError
from reference_engine.model.config import ModelConfig
from reference_engine.model.fields import Fields
from reference_engine.model.gguf import GGUFFile, read_gguf
from reference_engine.model.gguf_tokenizer import gguf_tokenizer
from reference_engine.model.hf_config import check_shape
from reference_engine.model.llama import Llama
from reference_engine.model.rope import DividedBy, LinearScaling, RopeScaling
from reference_engine.model.tokenizer import Tokenizer
from reference_engine.model.weights import Weights, build

HEAD = "output.weight"
DIVISORS = "rope_freqs.weight"
NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    HEAD: "lm_head.weight",
}
BLOCK = re.compile(r"blk\.(\d+)\.(\w+)\.weight")
BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def load_gguf(path: Path) -> tuple[Llama, Tokenizer, ModelConfig]:
    """Read the file; quantised weights become float32.

    Raises CheckpointError naming the field or tensor that is missing or wrong,
    UnsupportedModelError for a model that the engine can't run.
    """
    file = read_gguf(path)
    metadata = Fields(str(path), file.metadata)
    config = gguf_config(file, metadata)
    tokenizer = gguf_tokenizer(metadata, config.vocab_size, config.eos_token_ids)
    return build(str(path), config, tensors(file, config)), tokenizer, config


def gguf_config(file: GGUFFile, metadata: Fields) -> ModelConfig:
    """The configuration in the metadata keys of the llama architecture."""
    _refuse_unsupported(metadata)
    hidden = metadata.positive_int("llama.embedding_length")
    heads = metadata.positive_int("llama.attention.head_count")
    tokens = metadata.values.get("tokenizer.ggml.tokens")
    defined = len(tokens) if isinstance(tokens, list) else None
    bos = metadata.token_ids("tokenizer.ggml.bos_token_id")
    ends = [
        token_id
        for role in ("eos", "eot", "eom")
        for token_id in metadata.token_ids(f"tokenizer.ggml.{role}_token_id")
    ]
    config = ModelConfig(
        architecture="LlamaForCausalLM",
        vocab_size=metadata.positive_int("llama.vocab_size", defined),
        hidden_size=hidden,
        intermediate_size=metadata.positive_int("llama.feed_forward_length"),
        num_layers=metadata.positive_int("llama.block_count"),
        num_heads=heads,
        num_kv_heads=metadata.positive_int("llama.attention.head_count_kv", heads),
        head_dim=metadata.positive_int("llama.attention.key_length", max(1, hidden // heads)),
        rms_norm_eps=metadata.positive_float("llama.attention.layer_norm_rms_epsilon"),
        rope_theta=metadata.positive_float("llama.rope.freq_base", 10000.0),
        max_position_embeddings=metadata.positive_int("llama.context_length"),
        tie_word_embeddings=all(info.name != HEAD for info in file.tensors),
        eos_token_ids=tuple(dict.fromkeys(ends)),
        bos_token_id=bos[0] if bos else None,
        rope_scaling=rope_scaling(file, metadata),
    )
    check_shape(metadata.source, config)
    return config


def _refuse_unsupported(metadata: Fields) -> None:
    """Raise for what would not run, or run with wrong results."""
    expected = {
        "general.architecture": ("llama",),
        "llama.rope.scaling.type": (None, "linear", "none"),
        "llama.expert_count": (None, 0),
    }
    for name, supported in expected.items():
        value = metadata.values.get(name)
        if value not in supported:
            raise UnsupportedModelError(
                f"{metadata.source}: {name} is {value!r}, supported: {supported[-1]!r}"
            )


def rope_scaling(file: GGUFFile, metadata: Fields) -> RopeScaling | None:
    """Linear by the metadata, or the divisors that converters compute for Llama 3."""
    divisors = next((info for info in file.tensors if info.name == DIVISORS), None)
    linear = metadata.values.get("llama.rope.scaling.type") == "linear"
    if divisors is None:
        factor = metadata.positive_float("llama.rope.scaling.factor") if linear else None
        return LinearScaling(factor) if factor else None
    if linear:
        raise UnsupportedModelError(
            f"{metadata.source}: llama.rope.scaling.type is 'linear' and {DIVISORS} is there, "
            "supported: one of them"
        )
    values = file.decode(divisors)
    if not np.all(np.isfinite(values) & (values > 0)):
        raise CheckpointError(f"{metadata.source}: tensor {DIVISORS} holds no positive numbers")
    return DividedBy(tuple(values.flatten().tolist()))


def tensors(file: GGUFFile, config: ModelConfig) -> Weights:
    """All tensors in float32 under the names of Hugging Face checkpoints."""
    for info in file.tensors:
        if info.name == DIVISORS:
            continue  # part of the configuration
        tensor = torch.from_numpy(file.decode(info))
        match = BLOCK.fullmatch(info.name)
        if match is None:
            yield NAMES.get(info.name, info.name), tensor
            continue
        block, part = match[1], match[2]
        if part == "attn_q":
            tensor = unpermute(tensor, config.num_heads)
        elif part == "attn_k":
            tensor = unpermute(tensor, config.num_kv_heads)
        yield f"model.layers.{block}.{BLOCK_NAMES.get(part, part)}.weight", tensor


def unpermute(weight: Tensor, heads: int) -> Tensor:
    """Undo the row order of GGUF's q and k: pairs of rotated components next to each other.

    Llama here pairs component i with i + head_dim / 2. weight [heads * head_dim, hidden].
    """
    if weight.dim() != 2 or weight.shape[0] % (2 * heads):
        return weight  # of a wrong shape, which the caller reports against the config
    return weight.view(heads, -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)
