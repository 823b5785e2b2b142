"""The model configuration in the config.json of a Hugging Face directory."""

from collections.abc import Mapping

from reference_engine.errors import CheckpointError, UnsupportedModelError
from reference_engine.model.config import ModelConfig
from reference_engine.model.fields import Fields

SUPPORTED = ("LlamaForCausalLM",)
"""Architectures that Llama runs. A further one needs a branch here and its layers."""
MAX_LAYERS = 1024
"""Ten times the deepest known models; a damaged number would build layers for hours."""


def model_config(config: Fields, eos_token_ids: tuple[int, ...]) -> ModelConfig:
    """The configuration, with `eos_token_ids` from generation_config.json if that names any.

    Raises UnsupportedModelError naming the field that needs what the engine lacks, and
    CheckpointError naming the field that is wrong.
    """
    architecture = _architecture(config)
    _refuse_unsupported(config)
    hidden = config.positive_int("hidden_size")
    heads = config.positive_int("num_attention_heads")
    bos = config.token_ids("bos_token_id")
    result = ModelConfig(
        architecture=architecture,
        vocab_size=config.positive_int("vocab_size"),
        hidden_size=hidden,
        intermediate_size=config.positive_int("intermediate_size"),
        num_layers=config.positive_int("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=config.positive_int("num_key_value_heads", heads),
        head_dim=config.positive_int("head_dim", max(1, hidden // heads)),
        rms_norm_eps=config.positive_float("rms_norm_eps", 1e-6),
        rope_theta=_rope_theta(config),
        max_position_embeddings=config.positive_int("max_position_embeddings", 2048),
        tie_word_embeddings=config.boolean("tie_word_embeddings", default=False),
        eos_token_ids=eos_token_ids or config.token_ids("eos_token_id"),
        bos_token_id=bos[0] if bos else None,
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
    for token_id in config.eos_token_ids:
        if token_id >= config.vocab_size:
            raise CheckpointError(
                f"{source}: eos_token_id {token_id} is not below vocab_size {config.vocab_size}"
            )


def _architecture(config: Fields) -> str:
    names = config.values.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    if name not in SUPPORTED:
        raise UnsupportedModelError(
            f"{config.source}: architectures is {names!r}, supported: {', '.join(SUPPORTED)}"
        )
    return str(name)


def _refuse_unsupported(config: Fields) -> None:
    """Raise for what would run, but give wrong results."""
    activation = config.values.get("hidden_act", "silu")
    if activation not in ("silu", "swish"):
        raise UnsupportedModelError(
            f"{config.source}: hidden_act is {activation!r}, supported: silu"
        )
    for name in ("attention_bias", "mlp_bias"):
        if config.values.get(name):
            raise UnsupportedModelError(f"{config.source}: {name} is true, supported: false")
    if config.values.get("quantization_config"):
        raise UnsupportedModelError(
            f"{config.source}: quantization_config is set, supported: float weights only"
        )


def _rope_theta(config: Fields) -> float:
    """The base of the rotary frequencies, which newer files keep in rope_parameters."""
    for name in ("rope_parameters", "rope_scaling"):
        rope = config.values.get(name)
        if rope is None:
            continue
        if not isinstance(rope, Mapping):
            raise CheckpointError(f"{config.source}: {name} is {rope!r}, expected an object")
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind != "default":
            raise UnsupportedModelError(
                f"{config.source}: {name}.rope_type is {kind!r}, supported: default"
            )
        if "rope_theta" in rope:
            return Fields(f"{config.source}: {name}", rope).positive_float("rope_theta")
    return config.positive_float("rope_theta", 10000.0)
