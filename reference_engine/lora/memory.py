"""The adapters whose weights are in the engine's memory, and what they add to a step.

One protocol, two forms: products for the rows of one adapter at a time on a CPU, and stacked
matrices that a kernel picks from row by row on a GPU.
"""

from collections.abc import Sequence
from typing import Protocol

import torch

from reference_engine.lora.limits import LoraLimits
from reference_engine.lora.low_rank import AdapterWeights, projection_shapes
from reference_engine.lora.product_memory import ProductMemory
from reference_engine.lora.stacked_memory import StackedMemory
from reference_engine.model.adapters import AdapterHook
from reference_engine.model.config import ModelConfig


class AdapterMemory(Protocol):
    """For the engine's thread, between two steps."""

    def put(self, key: str, weights: AdapterWeights) -> None:
        """Add an adapter under a key that is not there."""
        ...

    def drop(self, key: str) -> None:
        """Forget an adapter that no running sequence uses."""
        ...

    def hook(self, keys: Sequence[str | None], lengths: Sequence[int]) -> AdapterHook | None:
        """What a step adds: row r has lengths[r] tokens and the adapter keys[r], None for none.

        None if no row has an adapter. Raises KeyError for an adapter that is not in memory.
        """
        ...


def adapter_memory(
    model: ModelConfig, limits: LoraLimits | None, device: torch.device
) -> AdapterMemory | None:
    """An empty memory for a model on the device; None without limits, that is without LoRA."""
    if limits is None:
        return None
    if device.type == "cpu":
        return ProductMemory()
    places, rank = limits.max_resident, limits.max_rank
    return StackedMemory(projection_shapes(model), places, rank, device)
