"""Rotary positions and the store into the paged cache, in one pass over q, k and v."""

import torch
from torch import Tensor


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate x [n, heads, head_dim]; component i is paired with component i + head_dim / 2."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def rope_store(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cos: Tensor,
    sin: Tensor,
    slots: Tensor,
    keys: Tensor,
    values: Tensor,
) -> Tensor:
    """Rotate q and k, write k and v of each token to its slot; the rotated q in the cache's type.

    q [n, heads, head_dim], k and v [n, kv_heads, head_dim], cos and sin float32
    [n, 1, head_dim / 2], slots int64 [n] with -1 for "do not store", keys and values one layer
    [blocks, page, kv_heads, head_dim] of the cache (on a GPU contiguous).
    """
    stored = slots >= 0
    place = slots[stored] // keys.shape[1], slots[stored] % keys.shape[1]
    keys[place] = rotate(k, cos, sin)[stored].to(keys.dtype)
    values[place] = v[stored].to(values.dtype)
    return rotate(q, cos, sin).to(keys.dtype)
