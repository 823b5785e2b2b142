"""Finds a model by name or path and loads it."""

from dataclasses import dataclass

import torch

from reference_engine.model.catalog import locate
from reference_engine.model.config import ModelConfig
from reference_engine.model.device import CPU
from reference_engine.model.llama import Llama
from reference_engine.model.load_gguf import load_gguf
from reference_engine.model.load_hf import load_hf
from reference_engine.model.product import resolve_dtype
from reference_engine.model.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to run."""

    name: str
    """`tiny` or `smollm2`, otherwise the name of the directory or file without its ending."""
    model: Llama
    tokenizer: Tokenizer
    config: ModelConfig
    dtype: torch.dtype = torch.float32
    """What the projections multiply in; logits and everything else are float32, though beside
    bfloat16 the head may read its weights as float16."""


def load_model(
    name_or_path: str, device: torch.device = CPU, dtype: str = "float32"
) -> LoadedModel:
    """Load `tiny`, `smollm2`, a Hugging Face directory or a .gguf file, ready to compute.

    dtype: float32, bfloat16 or auto, see resolve_dtype. Set the number of threads before, because
    the form of the products is chosen under it.

    Raises ModelNotFoundError if there is nothing of that name, CheckpointError if it is damaged
    and UnsupportedModelError if it needs what the engine lacks, ConfigError for another dtype.
    """
    path, name = locate(name_or_path)
    load = load_hf if path.is_dir() else load_gguf
    model, tokenizer, config = load(path)
    size = sum(weight.numel() for weight in model.parameters())
    chosen = resolve_dtype(dtype, size, device)
    return LoadedModel(name, model.to(device).prepare(chosen), tokenizer, config, chosen)
