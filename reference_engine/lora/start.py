"""Puts the parts together for an engine, and loads what its options name."""

from collections.abc import Iterable
from functools import partial

from reference_engine.errors import AdapterError, ConfigError
from reference_engine.lora.limits import LoraLimits
from reference_engine.lora.low_rank import projection_shapes
from reference_engine.lora.peft_directory import read_adapter
from reference_engine.lora.registry import AdapterRegistry
from reference_engine.lora.residency import Engines, Residency
from reference_engine.model.config import ModelConfig


def adapter_registry(
    model: ModelConfig, limits: LoraLimits | None, engines: Engines, max_waiting: int
) -> AdapterRegistry | None:
    """An empty registry; None without limits, that is without LoRA.

    max_waiting: calls that may wait for an adapter to come into memory.
    """
    if limits is None:
        return None
    shapes = projection_shapes(model)
    read = partial(read_adapter, shapes=shapes, max_rank=limits.max_rank, root=limits.root)
    residency = Residency(engines, limits.max_resident, max_waiting)
    return AdapterRegistry(limits.max_loaded, residency, read)


async def load_at_start(
    registry: AdapterRegistry | None, adapters: Iterable[tuple[str, str]]
) -> None:
    """Load adapters, given by name and absolute directory, under the ids 1, 2 and so on.

    Raises ConfigError naming the option that is wrong.
    """
    for lora_id, (name, path) in enumerate(adapters, start=1):
        if registry is None:
            raise ConfigError(f"--lora {name}={path} is given, but LoRA is switched off")
        try:
            await registry.load(lora_id, name, path)
        except AdapterError as error:
            raise ConfigError(f"--lora {name}={path}: {error}") from error
