"""Reads GGUF files: metadata and named tensors (the format of ggml-org/ggml, docs/gguf.md)."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reference_engine.errors import CheckpointError
from reference_engine.model.gguf_types import TYPES, Bytes, Floats

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_DIMENSIONS = 4
_STRING, _ARRAY, _BOOL = 8, 9, 7
_SCALARS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", _BOOL: "<u1",
    10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip


class _Cursor:
    """Reads forward through the file and never past its end."""

    def __init__(self, path: Path, data: Bytes) -> None:
        self.path = path
        self.data = data
        self.place = 0

    def take(self, count: int) -> Bytes:
        if count > len(self.data) - self.place:
            raise CheckpointError(
                f"{self.path}: truncated: {count} bytes wanted at {self.place}, "
                f"the file has {len(self.data)}"
            )
        self.place += count
        return self.data[self.place - count : self.place]

    def number(self, pattern: str) -> int:
        value: int = struct.unpack(pattern, bytes(self.take(struct.calcsize(pattern))))[0]
        return value

    def text(self) -> str:
        raw = bytes(self.take(self.number("<Q")))
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self.path}: a string is not UTF-8: {raw[:40]!r}") from error

    def value(self, kind: int) -> Any:
        """A metadata value; arrays become lists."""
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            inner, count = self.number("<I"), self.number("<Q")
            if inner in _SCALARS:
                return self.scalars(inner, count).tolist()
            if inner != _STRING:
                raise CheckpointError(f"{self.path}: metadata array of unknown type {inner}")
            return [self.text() for _ in range(count)]
        return self.scalars(kind, 1).tolist()[0]

    def scalars(self, kind: int, count: int) -> npt.NDArray[Any]:
        if kind not in _SCALARS:
            raise CheckpointError(f"{self.path}: metadata of unknown type {kind}")
        dtype = np.dtype(_SCALARS[kind])
        values = self.take(count * dtype.itemsize).view(dtype)
        return values.astype(bool) if kind == _BOOL else values


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies and how it is stored."""

    name: str
    shape: tuple[int, ...]
    """Slowest dimension first, as in torch (the file has them the other way round)."""
    kind: int
    """Number of the ggml type."""
    offset: int
    """Bytes from the start of the tensor data."""


@dataclass(frozen=True, slots=True)
class GGUFFile:
    """An open file; tensors are decoded when they are asked for."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: tuple[TensorInfo, ...]
    data: Bytes
    """The tensor data, mapped from disk."""

    def decode(self, info: TensorInfo) -> Floats:
        """The tensor in float32.

        Raises CheckpointError if it is stored in an unsupported type or lies outside the file.
        """
        storage = TYPES.get(info.kind)
        if storage is None:
            known = ", ".join(kind.name for kind in TYPES.values())
            raise CheckpointError(
                f"{self.path}: tensor {info.name} has ggml type {info.kind}, supported: {known}"
            )
        elements = int(np.prod(info.shape, dtype=object))
        if info.shape[-1] % storage.elements:
            raise CheckpointError(
                f"{self.path}: tensor {info.name} has rows of {info.shape[-1]}, "
                f"{storage.name} needs a multiple of {storage.elements}"
            )
        size = elements // storage.elements * storage.size
        raw = self.data[info.offset : info.offset + size]
        if len(raw) < size:
            raise CheckpointError(f"{self.path}: truncated in the data of tensor {info.name}")
        return storage.decode(raw.reshape(-1, storage.size)).reshape(info.shape)


def read_gguf(path: Path) -> GGUFFile:
    """Parse the header of a file.

    Raises CheckpointError if it is no GGUF file of version 2 or 3, or damaged.
    """
    try:
        data: Bytes = np.memmap(path, np.uint8, mode="r")
    except (OSError, ValueError) as error:  # ValueError: an empty file can't be mapped
        raise CheckpointError(f"{path}: can't be read: {error}") from error
    cursor = _Cursor(path, data)
    if bytes(cursor.take(4)) != MAGIC:
        raise CheckpointError(f"{path}: not a GGUF file (it starts with {bytes(data[:4])!r})")
    version = cursor.number("<I")
    if version not in VERSIONS:
        raise CheckpointError(f"{path}: GGUF version {version}, supported: 2, 3")
    tensor_count, value_count = cursor.number("<Q"), cursor.number("<Q")
    metadata: dict[str, Any] = {}
    for _ in range(value_count):
        name = cursor.text()
        metadata[name] = cursor.value(cursor.number("<I"))
    tensors = tuple(_tensor_info(cursor) for _ in range(tensor_count))
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise CheckpointError(f"{path}: general.alignment is {alignment!r}, expected 1 or more")
    start = -(-cursor.place // alignment) * alignment
    return GGUFFile(path, metadata, tensors, data[start:])


def _tensor_info(cursor: _Cursor) -> TensorInfo:
    name = cursor.text()
    dimensions = cursor.number("<I")
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise CheckpointError(f"{cursor.path}: tensor {name} has {dimensions} dimensions")
    shape = tuple(cursor.number("<Q") for _ in range(dimensions))[::-1]
    return TensorInfo(name, shape, cursor.number("<I"), cursor.number("<Q"))
