"""Loads a Hugging Face directory: config.json, safetensors and tokenizer.json."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer as Backend

from reference_engine.errors import CheckpointError
from reference_engine.model.config import ModelConfig
from reference_engine.model.fields import Fields
from reference_engine.model.hf_config import model_config
from reference_engine.model.llama import Llama
from reference_engine.model.tokenizer import Tokenizer
from reference_engine.model.weights import Weights, build

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENIZER = "tokenizer.json"


def load_hf(directory: Path) -> tuple[Llama, Tokenizer, ModelConfig]:
    """Read the directory.

    Raises CheckpointError naming the file and the field, or the tensor, that is missing or wrong,
    UnsupportedModelError for a model that the engine can't run.
    """
    generation = Fields(
        str(directory / "generation_config.json"),
        read_json(directory / "generation_config.json", required=False),
    )
    config = model_config(
        Fields(str(directory / "config.json"), read_json(directory / "config.json")),
        generation.token_ids("eos_token_id"),
    )
    tokenizer = load_tokenizer(directory, config)
    return build(str(directory), config, tensors(directory)), tokenizer, config


def read_json(path: Path, *, required: bool = True) -> dict[str, Any]:
    """The JSON object in a file; an empty one if the file is missing and not required."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        if not required:
            return {}
        raise CheckpointError(
            f"{path}: no such file, expected in a Hugging Face directory"
        ) from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: can't be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: holds {type(value).__name__}, expected a JSON object")
    return value


def load_tokenizer(directory: Path, config: ModelConfig) -> Tokenizer:
    """The tokenizer with its chat template, from tokenizer_config.json or chat_template.jinja."""
    path = directory / TOKENIZER
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file (tokenizer.model alone is not supported)")
    try:
        backend = Backend.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise CheckpointError(f"{path}: not a tokenizer: {error}") from error
    settings = read_json(directory / "tokenizer_config.json", required=False)
    return Tokenizer(
        backend,
        config.vocab_size,
        config.eos_token_ids,
        _chat_template(directory, settings),
        _special_tokens(settings),
    )


def _chat_template(directory: Path, settings: dict[str, Any]) -> str | None:
    """A string, or a list of named templates of which `default` is taken, or a file of its own."""
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template}
        template = named.get("default")
    path = directory / "chat_template.jinja"
    if template is None and path.is_file():
        template = path.read_text("utf-8")
    if template is not None and not isinstance(template, str):
        raise CheckpointError(
            f"{directory / 'tokenizer_config.json'}: chat_template is "
            f"{type(template).__name__}, expected a string"
        )
    return template


def _special_tokens(settings: dict[str, Any]) -> dict[str, str]:
    """bos_token and so on, which are strings or objects with a `content`."""
    found = {}
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        value = settings.get(name)
        if isinstance(value, dict):
            value = value.get("content")
        if isinstance(value, str):
            found[name] = value
    return found


def tensors(directory: Path) -> Weights:
    """All tensors of the directory by name, one after the other."""
    if (directory / INDEX).is_file():
        index = read_json(directory / INDEX)
        names = index.get("weight_map")
        if not isinstance(names, dict) or not all(isinstance(f, str) for f in names.values()):
            raise CheckpointError(f"{directory / INDEX}: weight_map is not a map to file names")
        files = [directory / Path(name).name for name in sorted(set(names.values()))]
    else:
        files = [directory / WEIGHTS]
    for path in files:
        yield from _file_tensors(path)


def _file_tensors(path: Path) -> Iterator[tuple[str, torch.Tensor]]:
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file, expected the model's weights")
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118  # safe_open can't be iterated
                yield name, file.get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: damaged or truncated: {error}") from error
