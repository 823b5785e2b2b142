"""Fills a model with named tensors and checks that they are exactly the ones it needs."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from reference_engine.errors import CheckpointError
from reference_engine.model.config import ModelConfig
from reference_engine.model.llama import Llama

Weights = Iterator[tuple[str, Tensor]]
"""(name as in Hugging Face checkpoints, tensor of any float type)."""

IGNORED = ("rotary_emb.inv_freq",)
"""Endings of names that old checkpoints carry and that are computed instead."""


def build(source: str, config: ModelConfig, weights: Weights) -> Llama:
    """A float32 model in evaluation mode; `source` is the path that errors name.

    Raises CheckpointError naming the tensors that are missing, unknown, of another shape, no
    floats or not finite.
    """
    with torch.device("meta"):
        model = Llama(config)
    wanted = {name: value.shape for name, value in model.state_dict().items()}
    found: dict[str, Tensor] = {}
    for name, tensor in weights:
        if name.endswith(IGNORED) or (name == "lm_head.weight" and config.tie_word_embeddings):
            continue
        if name not in wanted:
            raise CheckpointError(
                f"{source}: tensor {name} has no place in a {config.architecture} of this config"
            )
        found[name] = _checked(f"{source}: tensor {name}", tensor, wanted[name])
    missing = sorted(wanted.keys() - found.keys())
    if missing:
        raise CheckpointError(
            f"{source}: {len(missing)} of {len(wanted)} tensors are missing, "
            f"the first is {missing[0]}"
        )
    model.load_state_dict(found, assign=True)
    _freeze(model)
    return model


def _checked(name: str, tensor: Tensor, shape: torch.Size) -> Tensor:
    if tensor.shape != shape:
        raise CheckpointError(
            f"{name} has shape {list(tensor.shape)}, expected {list(shape)} by the config"
        )
    if not tensor.is_floating_point():
        raise CheckpointError(f"{name} has type {tensor.dtype}, expected floats")
    tensor = tensor.to(torch.float32).contiguous()
    if not torch.isfinite(tensor).all():
        raise CheckpointError(f"{name} holds values that are not finite")
    return tensor


def _freeze(model: nn.Module) -> None:
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad = False
