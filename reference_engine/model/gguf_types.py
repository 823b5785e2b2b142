"""Decoding of the ggml storage types: blocks of a fixed number of bytes to float32.

The layouts are those of ggml's quantisation structs. Every function takes uint8 [blocks, bytes of
a block] and returns float32 [blocks, elements of a block].
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Storage:
    """One storage type."""

    name: str
    elements: int
    """Elements of a block."""
    size: int
    """Bytes of a block."""
    decode: Callable[[Bytes], Floats]


def _halves(blocks: Bytes, start: int) -> Floats:
    """The float16 at byte `start` of every block, as a column [blocks, 1]."""
    return np.ascontiguousarray(blocks[:, start : start + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: Bytes) -> Floats:
    """Low halves of all bytes, then the high halves."""
    return np.concatenate((packed & 15, packed >> 4), axis=1).astype(np.float32)


def decode_f32(blocks: Bytes) -> Floats:
    """Little-endian, as all numbers in the file."""
    return np.ascontiguousarray(blocks).view("<f4").astype(np.float32)


def decode_f16(blocks: Bytes) -> Floats:
    """Half precision of IEEE 754."""
    return np.ascontiguousarray(blocks).view("<f2").astype(np.float32)


def decode_bf16(blocks: Bytes) -> Floats:
    """The upper half of a float32."""
    upper = np.ascontiguousarray(blocks).view("<u2").astype(np.uint32)
    return (upper << 16).view(np.float32)


def decode_q4_0(blocks: Bytes) -> Floats:
    """Scale (f16), 16 bytes of two 4-bit values: (q - 8) * scale."""
    return (_nibbles(blocks[:, 2:18]) - 8) * _halves(blocks, 0)


def decode_q4_1(blocks: Bytes) -> Floats:
    """Scale and minimum (f16), 16 bytes of two 4-bit values: q * scale + minimum."""
    return _nibbles(blocks[:, 4:20]) * _halves(blocks, 0) + _halves(blocks, 2)


def decode_q8_0(blocks: Bytes) -> Floats:
    """Scale (f16), 32 signed bytes."""
    return blocks[:, 2:34].view(np.int8).astype(np.float32) * _halves(blocks, 0)


def decode_q6_k(blocks: Bytes) -> Floats:
    """256 values of 6 bits: 128 bytes of low halves, 64 bytes of upper bit pairs.

    Then 16 signed scales of 16 values each and one scale (f16) over all of them. Each half of 128
    values is made of four runs of 32: low nibbles of bytes 0-31 and 32-63, then their high nibbles;
    run r takes the bit pair 2r of the upper bits.
    """
    low = blocks[:, :128].reshape(-1, 2, 2, 32)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32)
    nibbles = np.stack((low & 15, low >> 4), axis=2).reshape(-1, 2, 4, 32)
    pairs = (high >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)) & 3
    values = (nibbles | (pairs << 4)).astype(np.float32) - 32
    scales = blocks[:, 192:208].view(np.int8).astype(np.float32) * _halves(blocks, 208)
    decoded: Floats = values.reshape(-1, 16, 16) * scales[:, :, None]
    return decoded.reshape(-1, 256)


TYPES: Mapping[int, Storage] = {
    0: Storage("F32", 1, 4, decode_f32),
    1: Storage("F16", 1, 2, decode_f16),
    2: Storage("Q4_0", 32, 18, decode_q4_0),
    3: Storage("Q4_1", 32, 20, decode_q4_1),
    8: Storage("Q8_0", 32, 34, decode_q8_0),
    14: Storage("Q6_K", 256, 210, decode_q6_k),
    30: Storage("BF16", 1, 2, decode_bf16),
}
"""By the number of the ggml type."""
