"""The adapter_config.json of PEFT: which projections an adapter changes, and by how much."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reference_engine.errors import AdapterError, UnsupportedAdapterError
from reference_engine.lora.low_rank import Shapes
from reference_engine.lora.pattern import safe_pattern

FILE = "adapter_config.json"
ALL_LINEAR = "all-linear"

# What changes the computation beyond low-rank addends. False, null and empty mean unused.
UNSUPPORTED = (
    "use_dora",
    "lora_bias",
    "use_qalora",
    "use_bdlora",
    "fan_in_fan_out",
    "modules_to_save",
    "target_parameters",
    "trainable_token_indices",
    "layer_replication",
    "alora_invocation_tokens",
    "arrow_config",
    "kasa_config",
    "monteclora_config",
    "megatron_config",
)
# The others subtract their first values from the base, so the plain base would be the wrong one.
PLAIN_STARTS = (None, True, False, "gaussian", "orthogonal", "eva")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rank and scale of the addend to one projection."""

    rank: int
    scale: float


def wanted_projections(
    config: Mapping[str, Any], shapes: Shapes, max_rank: int
) -> dict[str, Wanted]:
    """The projections that the configuration targets; `shapes` are those that the model has.

    Raises AdapterError for values that make no sense and UnsupportedAdapterError for what the
    engine lacks; both name the field.
    """
    _refuse_unsupported(config)
    targets = [name for name in _targeted(config, shapes) if not _excluded(config, name)]
    if not targets:
        raise AdapterError(f"{FILE}: target_modules leaves no projection of this model")
    return {name: _wanted(config, name, max_rank) for name in targets}


def _refuse_unsupported(config: Mapping[str, Any]) -> None:
    if config.get("peft_type") != "LORA":
        raise UnsupportedAdapterError(f"{FILE}: peft_type is not LORA, the only one supported")
    unknown = [name for name in config if name.startswith("use_") and name != "use_rslora"]
    for name in (*UNSUPPORTED, *unknown):
        if config.get(name):
            raise UnsupportedAdapterError(f"{FILE}: {name} is set, supported: adapters without it")
    if config.get("bias", "none") != "none":
        raise UnsupportedAdapterError(f"{FILE}: bias is not 'none', the only one supported")
    if config.get("loftq_config"):
        raise UnsupportedAdapterError(f"{FILE}: loftq_config is set, expected no quantised base")
    start = config.get("init_lora_weights")
    if not any(start is plain or start == plain for plain in PLAIN_STARTS):
        raise UnsupportedAdapterError(f"{FILE}: init_lora_weights changes the base's weights")


def _targeted(config: Mapping[str, Any], shapes: Shapes) -> Iterable[str]:
    """The projections that target_modules names: endings of paths, or one regular expression."""
    targets = config.get("target_modules")
    if targets == ALL_LINEAR:
        return shapes
    if isinstance(targets, str):
        pattern = safe_pattern(f"{FILE}: target_modules", targets)
        return [name for name in shapes if pattern.fullmatch(name)]
    endings = _names("target_modules", targets)
    for number, ending in enumerate(endings):
        if not any(_ends(name, (ending,)) for name in shapes):
            raise UnsupportedAdapterError(
                f"{FILE}: target_modules[{number}] is no projection that adapters can change here, "
                f"supported: {', '.join(sorted({name.rpartition('.')[2] for name in shapes}))}"
            )
    found = [name for name in shapes if _ends(name, endings)]
    return _in_layers(config, found)


def _in_layers(config: Mapping[str, Any], names: list[str]) -> list[str]:
    """Those in the layers that layers_to_transform lists; all without it."""
    layers = config.get("layers_to_transform")
    if layers is None or layers == []:
        return names
    listed = [layers] if isinstance(layers, int) else layers
    if not isinstance(listed, list) or not all(isinstance(one, int) for one in listed):
        raise AdapterError(f"{FILE}: layers_to_transform is no list of layer numbers")
    if config.get("layers_pattern") not in (None, "", [], "layers", ["layers"]):
        raise UnsupportedAdapterError(f"{FILE}: layers_pattern is not 'layers'")
    return [name for name in names if int(name.split(".")[2]) in listed]


def _excluded(config: Mapping[str, Any], name: str) -> bool:
    excluded = config.get("exclude_modules")
    if not excluded:
        return False
    if isinstance(excluded, str):
        return safe_pattern(f"{FILE}: exclude_modules", excluded).fullmatch(name) is not None
    return _ends(name, _names("exclude_modules", excluded))


def _names(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise AdapterError(f"{FILE}: {field} is no list of names, expected one or an expression")
    return tuple(value)


def _ends(name: str, endings: Iterable[str]) -> bool:
    return any(name == ending or name.endswith(f".{ending}") for ending in endings)


def _wanted(config: Mapping[str, Any], name: str, max_rank: int) -> Wanted:
    rank = _pattern_value(config, "rank_pattern", name, config.get("r"))
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise AdapterError(f"{FILE}: r is no whole number of at least 1")
    if rank > max_rank:
        raise UnsupportedAdapterError(f"{FILE}: r is {rank}, supported: at most {max_rank}")
    alpha = _pattern_value(config, "alpha_pattern", name, config.get("lora_alpha"))
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not math.isfinite(alpha):
        raise AdapterError(f"{FILE}: lora_alpha is no finite number")
    root = config.get("use_rslora", False)
    if not isinstance(root, bool):
        raise AdapterError(f"{FILE}: use_rslora is neither true nor false")
    return Wanted(rank, alpha / (math.sqrt(rank) if root else rank))


def _pattern_value(config: Mapping[str, Any], field: str, name: str, default: object) -> object:
    """The value of the first key that matches the end of the path, as PEFT decides it."""
    patterns = config.get(field) or {}
    if not isinstance(patterns, dict):
        raise AdapterError(f"{FILE}: {field} is no map from expressions to numbers")
    for key, value in patterns.items():
        safe_pattern(f"{FILE}: a key of {field}", key)
        if re.match(rf"(.*\.)?({key})$", name):
            return value
    return default
