"""Reads an adapter from a directory that PEFT wrote, whole or not at all."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse
from torch import Tensor

from reference_engine.errors import AdapterError, UnsupportedAdapterError
from reference_engine.lora.low_rank import AdapterWeights, LowRank, Shapes
from reference_engine.lora.peft_config import FILE, wanted_projections

WEIGHTS = "adapter_model.safetensors"
PICKLED = "adapter_model.bin"
PREFIX = "base_model.model."

MAX_CONFIG_BYTES = 1024 * 1024
HEADER_BYTES = 1024 * 1024
"""Room for names and shapes beside the weights themselves; 2,000 tensors take about 300 kB."""


@dataclass(frozen=True, slots=True)
class ReadAdapter:
    """The weights, and a digest of the bytes that they came from."""

    weights: AdapterWeights
    digest: bytes


def read_adapter(path: str, shapes: Shapes, max_rank: int, root: Path | None = None) -> ReadAdapter:
    """Read the directory; `shapes` are the projections that the model has.

    root: where the directory has to lie once links are followed, None for anywhere.

    Raises AdapterError for what is malformed, and UnsupportedAdapterError for what the engine
    lacks. The texts name file and field or tensor, not the directory.
    """
    directory = Path(path)
    if not directory.is_absolute():
        raise AdapterError("source_path is not absolute, expected the path of a directory")
    if root is not None and not _is_below(directory, root):
        raise AdapterError("source_path is outside of where adapters may be loaded from")
    if not directory.is_dir():
        raise AdapterError("source_path is not a directory that can be read")
    config_bytes = _bytes(directory, FILE, MAX_CONFIG_BYTES)
    wanted = wanted_projections(_object(config_bytes), shapes, max_rank)
    # Each weight takes 4 bytes at most: float64 is refused by its size.
    numbers = sum(sum(shapes[name]) * one.rank for name, one in wanted.items())
    weight_bytes = _bytes(directory, WEIGHTS, 4 * numbers + HEADER_BYTES)
    tensors = _tensors(weight_bytes)
    weights = {
        name: LowRank(
            _take(tensors, f"{PREFIX}{name}.lora_A.weight", (one.rank, shapes[name][0])),
            _take(tensors, f"{PREFIX}{name}.lora_B.weight", (shapes[name][1], one.rank)),
            one.scale,
        )
        for name, one in wanted.items()
    }
    if tensors:
        raise AdapterError(
            f"{WEIGHTS}: {len(tensors)} tensors have no place in what {FILE} describes, "
            f"the first is {min(tensors)[:100]!r}"
        )
    return ReadAdapter(weights, blake2b(config_bytes + weight_bytes, digest_size=16).digest())


def _is_below(directory: Path, root: Path) -> bool:
    try:
        return directory.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError):  # no name of a file, or links in a circle
        return False


def _bytes(directory: Path, name: str, most: int) -> bytes:
    path = directory / name
    try:
        if not path.is_file():
            raise AdapterError(f"{name}: no such file in the directory{_hint(directory, name)}")
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise AdapterError(f"{name}: can't be read: {error.strerror}") from error
    if len(content) > most:
        raise AdapterError(f"{name}: larger than {most} bytes, too large for what it should hold")
    return content


def _hint(directory: Path, name: str) -> str:
    if name == WEIGHTS and (directory / PICKLED).is_file():
        return f"; {PICKLED} is not read, because unpickling runs code"
    return ""


def _object(content: bytes) -> Mapping[str, object]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise AdapterError(f"{FILE}: not JSON") from error
    if not isinstance(value, dict):
        raise AdapterError(f"{FILE}: holds {type(value).__name__}, expected a JSON object")
    return value


def _tensors(content: bytes) -> dict[str, Tensor]:
    try:
        return parse(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise AdapterError(f"{WEIGHTS}: damaged or truncated") from error


def _take(tensors: dict[str, Tensor], name: str, shape: tuple[int, int]) -> Tensor:
    """Remove the tensor from the map, checked and in float32."""
    tensor = tensors.pop(name, None)
    if tensor is None:
        raise AdapterError(f"{WEIGHTS}: tensor {name} is missing")
    if tensor.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise UnsupportedAdapterError(
            f"{WEIGHTS}: tensor {name} has type {tensor.dtype}, supported: float32 and 16-bit ones"
        )
    if tuple(tensor.shape) != shape:
        raise AdapterError(
            f"{WEIGHTS}: tensor {name} has shape {list(tensor.shape)}, expected {list(shape)}"
        )
    tensor = tensor.to(torch.float32).contiguous()
    if not torch.isfinite(tensor).all():
        raise AdapterError(f"{WEIGHTS}: tensor {name} holds values that are not finite")
    return tensor
