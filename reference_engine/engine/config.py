"""Sizes of an engine, checked once at start."""

from dataclasses import dataclass

from reference_engine.errors import ConfigError
from reference_engine.lora.limits import LoraLimits

# Keys and values of all layers; the pool is allocated whole at start.
DEFAULT_CACHE_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """num_blocks x block_size tokens of KV cache; requests beyond max_running + max_waiting are
    refused. max_running counts sequences in one step. lora: None for no adapters. ConfigError when
    a size makes no sense.
    """

    num_blocks: int
    block_size: int = 16
    max_running: int = 64
    max_waiting: int = 256
    max_batched_tokens: int = 512
    max_num_sequences: int = 8
    lora: LoraLimits | None = None

    def __post_init__(self) -> None:
        for name in ("num_blocks", "block_size", "max_running", "max_num_sequences"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected at least 1")
        if self.max_waiting < 0:
            raise ConfigError(f"max_waiting is {self.max_waiting}, expected at least 0")
        if self.max_batched_tokens < self.max_running:
            raise ConfigError(
                f"max_batched_tokens is {self.max_batched_tokens}, expected at least "
                f"max_running ({self.max_running}): every running sequence decodes in each step"
            )

    @property
    def cache_tokens(self) -> int:
        """Tokens that the KV cache holds."""
        return self.num_blocks * self.block_size


def default_num_blocks(token_bytes: int, block_size: int, window: int, max_running: int) -> int:
    """Blocks for `max_running` full windows, within DEFAULT_CACHE_BYTES, at least one window.

    token_bytes: keys and values of one token over all layers.
    """
    per_window = -(-window // block_size)
    affordable = DEFAULT_CACHE_BYTES // (token_bytes * block_size)
    return max(per_window, min(affordable, per_window * max_running))
