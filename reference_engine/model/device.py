"""Where a model runs."""

import torch

from reference_engine.errors import ConfigError

CPU = torch.device("cpu")
NAMES = ("auto", "cpu", "cuda")


def resolve_device(name: str) -> torch.device:
    """`cpu`, `cuda`, or `auto` for a GPU if torch sees one.

    Raises ConfigError for another name, and for `cuda` where there is none.
    """
    if name not in NAMES:
        raise ConfigError(f"device is {name!r}, expected one of {', '.join(NAMES)}")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ConfigError("device is 'cuda', but torch sees no GPU; expected cpu or auto")
    return torch.device("cuda", torch.cuda.current_device()) if available and name != "cpu" else CPU
