"""The models that are known by name, and where their files are."""

import os
from pathlib import Path

from reference_engine.errors import ModelNotFoundError

TINY = Path(__file__).resolve().parent.parent / "models" / "tiny"
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


def cache_directory() -> Path:
    """Where pulled models are kept: $XDG_CACHE_HOME/oe-engine or ~/.cache/oe-engine."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "oe-engine"


def locate(name_or_path: str) -> tuple[Path, str]:
    """The path of a model and the name it goes by.

    Raises ModelNotFoundError, which says what is accepted or what brings the model.
    """
    if name_or_path == "tiny":
        return TINY, "tiny"
    if name_or_path == "smollm2":
        path = cache_directory() / SMOLLM2
        if not path.is_file():
            raise ModelNotFoundError(f"model smollm2 is not at {path}; run: oe-engine pull smollm2")
        return path, "smollm2"
    path = Path(name_or_path).expanduser()
    if name_or_path and path.is_dir():
        return path, path.resolve().name
    if path.is_file() and path.suffix == ".gguf":
        return path, path.stem
    raise ModelNotFoundError(
        f"model {name_or_path!r}: expected tiny, smollm2, a Hugging Face directory or a .gguf file"
    )
