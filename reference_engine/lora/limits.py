"""How many adapters, how large and from where; advertised and enforced from here."""

from dataclasses import dataclass
from pathlib import Path

from reference_engine.errors import ConfigError


@dataclass(frozen=True, slots=True)
class LoraLimits:
    """max_loaded: adapters that requests can name. max_resident: those of them whose weights are
    in memory at once; the others are read again when a request comes. root: where all their
    directories have to lie, None for anywhere. ConfigError for a number below 1.
    """

    max_loaded: int = 8
    max_resident: int = 8
    max_rank: int = 64
    root: Path | None = None

    def __post_init__(self) -> None:
        for name in ("max_loaded", "max_resident", "max_rank"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected at least 1")
