"""Writes adapters as PEFT does, and merges them into the weights of a model to compare with."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from reference_engine.lora.low_rank import AdapterWeights, projection_shapes
from reference_engine.model.config import ModelConfig
from reference_engine.model.llama import Llama
from tests.reference_engine.engine.fakes import CONFIG

ALL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
SHAPES = projection_shapes(CONFIG)

# What PEFT 0.21 writes besides the fields that tests set.
PEFT_DEFAULTS: dict[str, Any] = {
    "alora_invocation_tokens": None,
    "alpha_pattern": {},
    "arrow_config": None,
    "auto_mapping": None,
    "base_model_name_or_path": "base",
    "bias": "none",
    "corda_config": None,
    "ensure_weight_tying": False,
    "eva_config": None,
    "exclude_modules": None,
    "fan_in_fan_out": False,
    "inference_mode": True,
    "init_lora_weights": True,
    "layer_replication": None,
    "layers_pattern": None,
    "layers_to_transform": None,
    "loftq_config": {},
    "lora_bias": False,
    "lora_dropout": 0.0,
    "megatron_config": None,
    "megatron_core": "megatron.core",
    "modules_to_save": None,
    "peft_type": "LORA",
    "peft_version": "0.21.2",
    "qalora_group_size": 16,
    "rank_pattern": {},
    "revision": None,
    "target_parameters": None,
    "task_type": "CAUSAL_LM",
    "trainable_token_indices": None,
    "use_bdlora": None,
    "use_dora": False,
    "use_qalora": False,
    "use_rslora": False,
}


def random_tensors(
    model: ModelConfig = CONFIG,
    targets: tuple[str, ...] = ALL,
    *,
    rank: int = 4,
    seed: int = 1,
    ranks: dict[str, int] | None = None,
) -> dict[str, Tensor]:
    """Tensors under PEFT's names; `ranks` by path overrides the rank."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, (size_in, size_out) in projection_shapes(model).items():
        if name.endswith(targets):
            r = (ranks or {}).get(name, rank)
            down = torch.randn(r, size_in, generator=generator) * 0.3
            up = torch.randn(size_out, r, generator=generator) * 0.3
            tensors[f"base_model.model.{name}.lora_A.weight"] = down
            tensors[f"base_model.model.{name}.lora_B.weight"] = up
    return tensors


def write_adapter(
    directory: Path,
    tensors: dict[str, Tensor] | None = None,
    *,
    seed: int = 1,
    **config: Any,
) -> Path:
    """A directory with an adapter for the small random model; keywords are fields of its config."""
    fields = {"r": 4, "lora_alpha": 8, "target_modules": list(ALL), **config}
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**PEFT_DEFAULTS, **fields}, indent=2)
    (directory / "adapter_config.json").write_text(text)
    weights = random_tensors(seed=seed) if tensors is None else tensors
    save_file(weights, directory / "adapter_model.safetensors", {"format": "pt"})
    return directory


def merge(model: Llama, weights: AdapterWeights) -> Llama:
    """Add every W + scale * B A to the model's own weights."""
    for name, one in weights.items():
        model.get_parameter(f"{name}.weight").data += one.scale * one.up @ one.down
    return model
