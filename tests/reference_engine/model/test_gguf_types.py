import random
import struct
from collections.abc import Callable

import numpy as np
import pytest

from reference_engine.model.gguf_types import TYPES

BY_NAME = {storage.name: storage for storage in TYPES.values()}


def half(raw: bytes) -> float:
    value: float = struct.unpack("<e", raw)[0]
    return value


def signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def f32(block: bytes) -> list[float]:
    return list(struct.unpack("<f", block))


def f16(block: bytes) -> list[float]:
    return [half(block)]


def bf16(block: bytes) -> list[float]:
    return list(struct.unpack("<f", b"\0\0" + block))


def q4_0(block: bytes) -> list[float]:
    scale, packed = half(block[:2]), block[2:]
    low = [(byte % 16 - 8) * scale for byte in packed]
    return low + [(byte // 16 - 8) * scale for byte in packed]


def q4_1(block: bytes) -> list[float]:
    scale, minimum, packed = half(block[:2]), half(block[2:4]), block[4:]
    low = [byte % 16 * scale + minimum for byte in packed]
    return low + [byte // 16 * scale + minimum for byte in packed]


def q8_0(block: bytes) -> list[float]:
    return [signed(byte) * half(block[:2]) for byte in block[2:]]


def q6_k(block: bytes) -> list[float]:
    """Value i: which half, run and place it has decides where its bits are."""
    low, high, scales, scale = block[:128], block[128:192], block[192:208], half(block[208:])
    values = []
    for i in range(256):
        part, run, place = i // 128, i % 128 // 32, i % 32
        byte = low[part * 64 + run % 2 * 32 + place]
        nibble = byte % 16 if run < 2 else byte // 16
        pair = high[part * 32 + place] // 4**run % 4
        values.append((nibble + 16 * pair - 32) * signed(scales[i // 16]) * scale)
    return values


REFERENCES: dict[str, Callable[[bytes], list[float]]] = {
    "F32": f32,
    "F16": f16,
    "BF16": bf16,
    "Q4_0": q4_0,
    "Q4_1": q4_1,
    "Q8_0": q8_0,
    "Q6_K": q6_k,
}
HALVES = {"F16": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q8_0": [0], "Q6_K": [208]}


def random_block(name: str, size: int, rng: random.Random) -> bytes:
    """Random bits with finite floats where the type has floats."""
    if name == "F32":
        return struct.pack("<f", rng.gauss(0, 1))
    if name == "BF16":
        return struct.pack("<f", rng.gauss(0, 1))[2:]
    block = bytearray(rng.randbytes(size))
    for start in HALVES[name]:
        block[start : start + 2] = struct.pack("<e", rng.gauss(0, 1))
    return bytes(block)


@pytest.mark.parametrize("name", BY_NAME)
def test_blocks_decode_as_their_definition_says(name: str) -> None:
    """Every storage type equals a scalar decoder written from its layout."""
    storage, rng = BY_NAME[name], random.Random(3)
    blocks = [random_block(name, storage.size, rng) for _ in range(9)]
    decoded = storage.decode(np.frombuffer(b"".join(blocks), np.uint8).reshape(9, -1))
    assert decoded.dtype == np.float32
    assert decoded.shape == (9, storage.elements)
    expected = np.array([REFERENCES[name](block) for block in blocks])
    np.testing.assert_allclose(decoded, expected, rtol=1e-6, atol=1e-6)
