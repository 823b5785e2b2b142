"""Finds a model by name or path and loads it."""

from dataclasses import dataclass

from reference_engine.model.catalog import locate
from reference_engine.model.config import ModelConfig
from reference_engine.model.llama import Llama
from reference_engine.model.load_gguf import load_gguf
from reference_engine.model.load_hf import load_hf
from reference_engine.model.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to run."""

    name: str
    """`tiny` or `smollm2`, otherwise the name of the directory or file without its ending."""
    model: Llama
    tokenizer: Tokenizer
    config: ModelConfig


def load_model(name_or_path: str) -> LoadedModel:
    """Load `tiny`, `smollm2`, a Hugging Face directory or a .gguf file.

    Raises ModelNotFoundError if there is nothing of that name, CheckpointError if it is damaged
    and UnsupportedModelError if it needs what the engine lacks.
    """
    path, name = locate(name_or_path)
    load = load_hf if path.is_dir() else load_gguf
    model, tokenizer, config = load(path)
    return LoadedModel(name, model, tokenizer, config)
