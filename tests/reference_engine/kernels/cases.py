"""Inputs of every kernel in every variant, tiny, with the float64 result beside the found one.

The same cases judge the twins, Triton's interpreter and a GPU, and are what is compiled for sm_90.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_engine.kernels.dispatch import Kernels
from reference_engine.kernels.logits import Penalties
from tests.reference_engine.kernels import reference

Pairs = list[tuple[Tensor, Tensor]]
"""(found, expected in float64), each on any device."""

TYPES = (torch.float32, torch.bfloat16, torch.float16)
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}
"""Absolute and relative: a few roundings of 24, 8 and 11 bits, for values up to about 4."""


@dataclass(frozen=True, slots=True)
class Case:
    """One variant of one kernel."""

    name: str
    tolerance: float
    run: Callable[[Kernels, torch.device], Pairs]


def worst(pairs: Pairs) -> float:
    """Largest error over 1 + |expected|; infinite where one is NaN or the infinities differ."""
    ratio = 0.0
    for found, expected in pairs:
        got, wanted = found.detach().cpu().double(), expected.cpu().double()
        same = got == wanted
        error = torch.where(same, 0.0, (got - wanted).abs() / (1 + wanted.abs()))
        ratio = max(ratio, float(error.nan_to_num(nan=torch.inf).max()))
    return ratio


def all_cases() -> Iterator[Case]:
    """Every variant."""
    for dtype in TYPES:
        kind = str(dtype).removeprefix("torch.")
        tolerance = TOLERANCE[dtype]
        yield Case(f"rms_norm-{kind}", tolerance, _rms_norm(dtype))
        yield Case(f"add_rms_norm-{kind}", tolerance, _add_rms_norm(dtype))
        yield Case(f"silu_mul-{kind}", tolerance, _silu_mul(dtype))
        for added in dict.fromkeys((dtype, torch.float32)):
            name = f"lora-{kind}-to-{str(added).removeprefix('torch.')}"
            yield Case(name, tolerance, _lora(dtype, added))
        for head_dim in (64, 128):
            yield Case(f"rope_store-{kind}-{head_dim}", tolerance, _rope_store(dtype, head_dim))
        for number, head_dim in enumerate((64, 128)):
            # One chunk of keys, and several that are merged; ratios and pages take turns.
            group, page = ((1, 16), (4, 32))[number]
            yield _decode_case(dtype, head_dim, group, page, (1, 37, 0))
            group, page = ((3, 5), (7, 256))[number]
            yield _decode_case(dtype, head_dim, group, page, (300, 513, 2))
    for name, with_penalties, with_mask in (
        ("temperature", False, False),
        ("mask", False, True),
        ("penalties", True, False),
        ("all", True, True),
    ):
        yield Case(f"logits-{name}", 2e-6, _logits(with_penalties, with_mask))


def _random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator).to(dtype)


def _rms_norm(dtype: torch.dtype) -> Callable[[Kernels, torch.device], Pairs]:
    def run(kernels: Kernels, device: torch.device) -> Pairs:
        x, weight = _random(3, 2, 48, dtype=dtype), _random(48)
        found = kernels.rms_norm(x.to(device), weight.to(device), 1e-5)
        assert found.dtype is dtype
        return [(found, reference.rms_norm(x, weight, 1e-5))]

    return run


def _add_rms_norm(dtype: torch.dtype) -> Callable[[Kernels, torch.device], Pairs]:
    def run(kernels: Kernels, device: torch.device) -> Pairs:
        x, delta, weight = _random(3, 48), _random(3, 48, dtype=dtype, seed=1), _random(48)
        normed, total = kernels.add_rms_norm(
            x.to(device), delta.to(device), weight.to(device), 1e-5, dtype
        )
        assert (normed.dtype, total.dtype) == (dtype, torch.float32)
        expected = x.double() + delta.double()
        return [(normed, reference.rms_norm(expected, weight, 1e-5)), (total, expected)]

    return run


def _silu_mul(dtype: torch.dtype) -> Callable[[Kernels, torch.device], Pairs]:
    def run(kernels: Kernels, device: torch.device) -> Pairs:
        # Two parts of one wider row, as a joint projection gives them.
        gate, up = _random(3, 2 * 40, dtype=dtype).to(device).split(40, dim=1)
        return [(kernels.silu_mul(gate, up), reference.silu_mul(gate.cpu(), up.cpu()))]

    return run


def _rope_store(dtype: torch.dtype, head_dim: int) -> Callable[[Kernels, torch.device], Pairs]:
    def run(kernels: Kernels, device: torch.device) -> Pairs:
        heads, kv_heads = 3, 2
        sizes = [heads * head_dim, kv_heads * head_dim, kv_heads * head_dim]
        joint = _random(4, sum(sizes)).to(device)
        q, k, v = (part.view(4, -1, head_dim) for part in joint.split(sizes, dim=1))
        angles = _random(4, 1, head_dim // 2) * 3
        keys = _random(3, 5, kv_heads, head_dim, dtype=dtype, seed=2)
        values = _random(3, 5, kv_heads, head_dim, dtype=dtype, seed=3)
        slots = torch.tensor([7, -1, 0, 14])
        new_keys, new_values = keys.to(device, copy=True), values.to(device, copy=True)
        found = kernels.rope_store(
            q,
            k,
            v,
            angles.cos().to(device),
            angles.sin().to(device),
            slots.to(device),
            new_keys,
            new_values,
        )
        assert found.dtype is dtype
        keys, values = keys.double(), values.double()
        turned = reference.rotate(k.cpu(), angles.cos(), angles.sin())
        for token, slot in enumerate(slots.tolist()):
            if slot >= 0:
                keys[slot // 5, slot % 5] = turned[token]
                values[slot // 5, slot % 5] = v[token].cpu().double()
        expected = reference.rotate(q.cpu(), angles.cos(), angles.sin())
        return [(found, expected), (new_keys, keys), (new_values, values)]

    return run


def _decode_case(
    dtype: torch.dtype, head_dim: int, group: int, page: int, contexts: tuple[int, ...]
) -> Case:
    kind = str(dtype).removeprefix("torch.")
    name = f"paged_decode-{kind}-{head_dim}-group{group}-page{page}-context{max(contexts)}"

    def run(kernels: Kernels, device: torch.device) -> Pairs:
        q, keys, values, tables, lengths = decode_inputs(dtype, head_dim, group, page, contexts)
        found = kernels.paged_decode(
            q.to(device),
            keys.to(device),
            values.to(device),
            tables.to(device),
            lengths.to(device),
            max(contexts),
        )
        return [(found, reference.paged_decode(q, keys, values, tables, lengths))]

    return Case(name, TOLERANCE[dtype], run)


def decode_inputs(
    dtype: torch.dtype, head_dim: int, group: int, page: int, contexts: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Queries, a cache of two KV heads, tables of shuffled blocks, and context lengths."""
    rows, kv_heads = len(contexts), 2
    width = -(-max(contexts) // page)
    q = _random(rows, kv_heads * group, head_dim, dtype=dtype)
    # Block 0 is in no table: a kernel that reads it for lack of a mask would be wrong.
    shape = (1 + rows * width, page, kv_heads, head_dim)
    keys, values = _random(*shape, dtype=dtype), _random(*shape, dtype=dtype, seed=1)
    keys[0], values[0] = 99, 99
    order = torch.randperm(rows * width, generator=torch.Generator().manual_seed(0)) + 1
    tables = order.view(rows, width).to(torch.int32)
    for row, context in enumerate(contexts):
        tables[row, -(-context // page) :] = 0
    return q, keys, values, tables, torch.tensor(contexts, dtype=torch.int32)


def _logits(with_penalties: bool, with_mask: bool) -> Callable[[Kernels, torch.device], Pairs]:
    def run(kernels: Kernels, device: torch.device) -> Pairs:
        logits = _random(3, 75) * 4
        temperature = torch.tensor([0.0, 0.5, 1.7])
        penalties = _penalties(torch.device("cpu")) if with_penalties else None
        bitmask = None
        if with_mask:
            generator = torch.Generator().manual_seed(0)
            bitmask = torch.randint(-(2**31), 2**31, (3, 3), generator=generator).int()
        found = logits.to(device, copy=True)
        kernels.process_logits(
            found,
            temperature.to(device),
            _penalties(device) if with_penalties else None,
            bitmask if bitmask is None else bitmask.to(device),
        )
        return [(found, reference.process_logits(logits, temperature, penalties, bitmask))]

    return run


def _penalties(device: torch.device) -> Penalties:
    return Penalties(
        rows=torch.tensor([0, 0, 1, 2, 2], dtype=torch.int32, device=device),
        tokens=torch.tensor([74, 3, 0, 31, 32], dtype=torch.int32, device=device),
        counts=torch.tensor([1, 0, 5, 2, 0], dtype=torch.int32, device=device),
        repetition=torch.tensor([1.3, 1.0, 0.7], device=device),
        frequency=torch.tensor([0.0, 0.25, -1.0], device=device),
        presence=torch.tensor([0.5, 0.0, 1.5], device=device),
    )


def _lora(dtype: torch.dtype, added: torch.dtype) -> Callable[[Kernels, torch.device], Pairs]:
    def run(kernels: Kernels, device: torch.device) -> Pairs:
        x, down = _random(4, 40, dtype=dtype), _random(2, 6, 40, dtype=dtype) * 0.1
        up, before = _random(2, 33, 6, dtype=dtype), _random(4, 33, dtype=added)
        scales = torch.tensor([0.5, 2.0])
        adapters = torch.tensor([1, -1, 0, 1], dtype=torch.int32)
        h = kernels.lora_shrink(x.to(device), down.to(device), adapters.to(device))
        after = before.to(device, copy=True)
        kernels.lora_expand(after, h, up.to(device), scales.to(device), adapters.to(device))
        expected = reference.lora_expand(before, h.cpu(), up, scales, adapters)
        return [(h, reference.lora_shrink(x, down, adapters)), (after, expected)]

    return run
