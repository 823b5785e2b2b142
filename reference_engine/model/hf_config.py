"""The model configuration in the config.json of a Hugging Face directory."""

from collections.abc import Mapping
from dataclasses import dataclass

from reference_engine.errors import CheckpointError, UnsupportedModelError
from reference_engine.model.config import ModelConfig
from reference_engine.model.fields import Fields
from reference_engine.model.hf_rope import rope
from reference_engine.model.rope import DividedBy


@dataclass(frozen=True, slots=True)
class Family:
    """What the name of an architecture says beyond the fields of its config."""

    max_position_embeddings: int
    """Where the config doesn't say."""
    kv_heads_optional: bool = False
    """Without num_key_value_heads there are as many as attention heads."""
    qkv_bias: bool | None = None
    """Biases on q, k and v alone; None: attention_bias of the config tells, for o as well."""
    qk_norm: bool = False
    head_dim: int | None = None
    """Where the config doesn't say; None: hidden_size / num_attention_heads."""
    window_by_size: bool = False
    """sliding_window alone switches the window on; elsewhere use_sliding_window has to."""


FAMILIES: Mapping[str, Family] = {
    "LlamaForCausalLM": Family(2048, kv_heads_optional=True, window_by_size=True),
    "Qwen2ForCausalLM": Family(32768, qkv_bias=True),
    "Qwen3ForCausalLM": Family(32768, qk_norm=True, head_dim=128),
}
"""Architectures that the engine runs, all of them as a Llama with some more parts."""
MAX_LAYERS = 1024
"""Ten times the deepest known models; a damaged number would build layers for hours."""


def model_config(config: Fields, eos_token_ids: tuple[int, ...]) -> ModelConfig:
    """The configuration, with `eos_token_ids` from generation_config.json if that names any.

    Raises UnsupportedModelError naming the field that needs what the engine lacks, and
    CheckpointError naming the field that is wrong.
    """
    architecture = _architecture(config)
    family = FAMILIES[architecture]
    _refuse_unsupported(config, family)
    hidden = config.positive_int("hidden_size")
    heads = config.positive_int("num_attention_heads")
    bos = config.token_ids("bos_token_id")
    theta, scaling = rope(config)
    bias = config.boolean("attention_bias", default=False)
    result = ModelConfig(
        architecture=architecture,
        vocab_size=config.positive_int("vocab_size"),
        hidden_size=hidden,
        intermediate_size=config.positive_int("intermediate_size"),
        num_layers=config.positive_int("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=config.positive_int(
            "num_key_value_heads", heads if family.kv_heads_optional else None
        ),
        head_dim=config.positive_int("head_dim", family.head_dim or max(1, hidden // heads)),
        rms_norm_eps=config.positive_float("rms_norm_eps", 1e-6),
        rope_theta=theta,
        max_position_embeddings=config.positive_int(
            "max_position_embeddings", family.max_position_embeddings
        ),
        tie_word_embeddings=config.boolean("tie_word_embeddings", default=False),
        eos_token_ids=eos_token_ids or config.token_ids("eos_token_id"),
        bos_token_id=bos[0] if bos else None,
        rope_scaling=scaling,
        qkv_bias=bias if family.qkv_bias is None else family.qkv_bias,
        output_bias=bias and family.qkv_bias is None,
        qk_norm=family.qk_norm,
    )
    check_shape(config.source, result)
    return result


def check_shape(source: str, config: ModelConfig) -> None:
    """Raise CheckpointError if the heads don't fit each other or a number is out of range."""
    if config.num_heads % config.num_kv_heads:
        raise CheckpointError(
            f"{source}: {config.num_heads} attention heads can't share "
            f"{config.num_kv_heads} key-value heads, expected a multiple"
        )
    if config.num_layers > MAX_LAYERS:
        raise CheckpointError(
            f"{source}: the model has {config.num_layers} layers, expected at most {MAX_LAYERS}"
        )
    if config.head_dim % 2:
        raise CheckpointError(f"{source}: head_dim is {config.head_dim}, expected an even number")
    scaling = config.rope_scaling
    if isinstance(scaling, DividedBy) and len(scaling.divisors) != config.head_dim // 2:
        raise CheckpointError(
            f"{source}: {len(scaling.divisors)} rotary frequencies are scaled, expected "
            f"{config.head_dim // 2} with head_dim {config.head_dim}"
        )
    for token_id in config.eos_token_ids:
        if token_id >= config.vocab_size:
            raise CheckpointError(
                f"{source}: eos_token_id {token_id} is not below vocab_size {config.vocab_size}"
            )


def _architecture(config: Fields) -> str:
    names = config.values.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    if name not in FAMILIES:
        raise UnsupportedModelError(
            f"{config.source}: architectures is {names!r}, supported: {', '.join(FAMILIES)}"
        )
    return str(name)


def _refuse_unsupported(config: Fields, family: Family) -> None:
    """Raise for what would run, but give wrong results."""
    activation = config.values.get("hidden_act", "silu")
    if activation not in ("silu", "swish"):
        raise UnsupportedModelError(
            f"{config.source}: hidden_act is {activation!r}, supported: silu"
        )
    if config.boolean("mlp_bias", default=False):
        raise UnsupportedModelError(f"{config.source}: mlp_bias is true, supported: false")
    if config.values.get("quantization_config"):
        raise UnsupportedModelError(
            f"{config.source}: quantization_config is set, supported: float weights only"
        )
    _refuse_window(config, family)


def _refuse_window(config: Fields, family: Family) -> None:
    """Raise if some layers see only the latest tokens."""
    window = config.values.get("sliding_window")
    by_size = family.window_by_size and window is not None
    if config.boolean("use_sliding_window", default=by_size):
        raise UnsupportedModelError(
            f"{config.source}: sliding_window is {window!r} and in use, supported: full attention"
        )
    kinds = config.values.get("layer_types") or []
    if not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds):
        raise UnsupportedModelError(
            f"{config.source}: layer_types is {kinds!r}, supported: full_attention"
        )
