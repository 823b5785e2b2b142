"""Kernels on realistic shapes: errors against float64, and bandwidth against a plain copy."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.gpu_timing import copy_seconds, num_bytes, seconds
from reference_engine.kernels.dispatch import TORCH, Kernels
from reference_engine.model.paged_prefill import (
    Chunks,
    over_gathered,
    over_pages,
    paged_prefill,
    reads_pages,
)
from tests.reference_engine.kernels.cases import all_cases, worst

HEADS, KV_HEADS, HEAD_DIM, PAGE = 32, 8, 128, 16
"""Llama-3.1-8B's attention and the engine's own page."""

Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Load:
    """A call and the bytes that it can't avoid moving."""

    name: str
    call: Callable[[], object]
    moved: int


@dataclass(frozen=True, slots=True)
class Attention:
    """Inputs of a decode step."""

    q: Tensor
    keys: Tensor
    values: Tensor
    tables: Tensor
    contexts: Tensor
    longest: int


def case_errors(kernels: Kernels, device: torch.device) -> Iterator[Row]:
    """Every small case against float64."""
    for case in all_cases():
        error = worst(case.run(kernels, device))
        yield {
            "case": case.name,
            "error": error,
            "tolerance": case.tolerance,
            "ok": error <= case.tolerance,
        }


def attention(rows: int, context: int, device: torch.device) -> Attention:
    """Rows of one length whose pages lie scattered over the cache, bfloat16."""
    width = -(-context // PAGE)
    shape = (rows * width, PAGE, KV_HEADS, HEAD_DIM)
    keys = torch.randn(shape, device=device, dtype=torch.bfloat16)
    tables = torch.randperm(rows * width, device=device).view(rows, width).int()
    return Attention(
        torch.randn(rows, HEADS, HEAD_DIM, device=device, dtype=torch.bfloat16),
        keys,
        torch.randn_like(keys),
        tables,
        torch.full((rows,), context, dtype=torch.int32, device=device),
        context,
    )


def decode(kernels: Kernels, x: Attention) -> Tensor:
    """One call of the decode attention."""
    return kernels.paged_decode(x.q, x.keys, x.values, x.tables, x.contexts, x.longest)


def large_decode(kernels: Kernels, device: torch.device, context: int) -> Iterator[Row]:
    """Long rows of unequal length against float64, and each row alone against the batch."""
    x = attention(8, context, device)
    lengths = [context, 1, context // 2, context // 3, 255, 256, 257, context - 1]
    contexts = torch.tensor(lengths, dtype=torch.int32, device=device)
    found = kernels.paged_decode(x.q, x.keys, x.values, x.tables, contexts, context)
    expected = TORCH.paged_decode(
        x.q.double(), x.keys.double(), x.values.double(), x.tables, contexts, context
    )
    error = worst([(found, expected)])
    yield {"case": f"paged_decode-{context}", "error": error, "tolerance": 0.02, "ok": error < 0.02}
    alone = torch.cat(
        [
            kernels.paged_decode(
                x.q[row : row + 1],
                x.keys,
                x.values,
                x.tables[row : row + 1],
                contexts[row : row + 1],
                length,
            )
            for row, length in enumerate(lengths)
        ]
    )
    same = torch.equal(alone, found)
    yield {"case": "paged_decode-row-alone-same-bits", "error": 0.0 if same else 1.0, "ok": same}


def prefill(device: torch.device, length: int) -> Iterator[Row]:
    """Which attention prompts get, for the engine's page and for a large one, and its error."""
    for page in (PAGE, 256):
        pages = -(-2 * length // page)
        shape = (2 * pages, page, KV_HEADS, HEAD_DIM)
        keys = torch.randn(shape, device=device, dtype=torch.bfloat16)
        values = torch.randn_like(keys)
        q = torch.randn(length + 8, HEADS, HEAD_DIM, device=device, dtype=torch.bfloat16)
        chunks = Chunks(
            starts=torch.tensor([0, length, length + 8], dtype=torch.int32, device=device),
            query_lengths=(length, 8),
            context_lengths=(2 * length, length),
            contexts=torch.tensor([2 * length, length], dtype=torch.int32, device=device),
            block_tables=torch.randperm(2 * pages, device=device).view(2, pages).int(),
        )
        in_place = reads_pages(device, q.dtype, page, HEADS, KV_HEADS, HEAD_DIM)
        exact = over_gathered(q.float(), keys.float(), values.float(), chunks)
        error = worst([(paged_prefill(q, keys, values, chunks), exact)])
        row: Row = {"case": f"prefill-page{page}", "error": error, "ok": error < 0.02}
        row["reads_pages"] = in_place
        row["gathered_us"] = 1e6 * seconds(lambda: over_gathered(q, keys, values, chunks), device)  # noqa: B023
        if in_place:
            row["in_place_us"] = 1e6 * seconds(lambda: over_pages(q, keys, values, chunks), device)  # noqa: B023
        yield row


def loads(kernels: Kernels, device: torch.device, scale: int) -> Iterator[Load]:
    """All kernels on shapes of an 8B model; `scale` divides the sizes for a trial on a CPU."""
    n, hidden, inner, vocab = 8192 // scale, 4096, 14336, 128_256 // scale
    half = {"device": device, "dtype": torch.bfloat16}
    x, delta = torch.randn(n, hidden, device=device), torch.randn(n, hidden, **half)  # type: ignore[call-overload]
    weight = torch.ones(hidden, device=device)
    yield Load(
        "add_rms_norm",
        lambda: kernels.add_rms_norm(x, delta, weight, 1e-5, torch.bfloat16),
        2 * num_bytes(x, delta),
    )
    gate = torch.randn(n, inner, **half)  # type: ignore[call-overload]
    yield Load("silu_mul", lambda: kernels.silu_mul(gate, gate), 3 * num_bytes(gate))
    yield _rope_store(kernels, device, n)
    for rows, context in ((1, 4096), (1, 32_768), (16, 4096), (64, 4096), (64, 512)):
        yield _decode_load(kernels, device, rows, context // scale)
    logits = torch.randn(64, vocab, device=device)
    heat = torch.ones(64, device=device)
    mask = torch.full((64, -(-vocab // 32)), -1, dtype=torch.int32, device=device)
    yield Load(
        "logits",
        lambda: kernels.process_logits(logits, heat, None, mask),
        2 * num_bytes(logits) + num_bytes(mask),
    )
    yield from _lora(kernels, device, hidden)


def _decode_load(kernels: Kernels, device: torch.device, rows: int, context: int) -> Load:
    x = attention(rows, context, device)
    # Keys and values are read once; all else is a thousandth of that.
    return Load(
        f"paged_decode {rows} x {context}", lambda: decode(kernels, x), num_bytes(x.keys, x.values)
    )


def _rope_store(kernels: Kernels, device: torch.device, n: int) -> Load:
    q = torch.randn(n, HEADS, HEAD_DIM, device=device, dtype=torch.bfloat16)
    k = torch.randn(n, KV_HEADS, HEAD_DIM, device=device, dtype=torch.bfloat16)
    keys = torch.zeros(n // PAGE, PAGE, KV_HEADS, HEAD_DIM, device=device, dtype=torch.bfloat16)
    values = torch.zeros_like(keys)
    angles = torch.randn(n, 1, HEAD_DIM // 2, device=device)
    slots = torch.randperm(n // PAGE * PAGE, device=device)
    n = slots.shape[0]
    q, k, angles = q[:n], k[:n], angles[:n]
    return Load(
        "rope_store",
        lambda: kernels.rope_store(q, k, k, angles, angles, slots, keys, values),
        2 * num_bytes(q) + 4 * num_bytes(k) + 2 * num_bytes(angles),
    )


def _lora(kernels: Kernels, device: torch.device, hidden: int) -> Iterator[Load]:
    """64 rows with 64 adapters of rank 16: every row reads matrices of its own."""
    x = torch.randn(64, hidden, device=device, dtype=torch.bfloat16)
    down = torch.randn(64, 16, hidden, device=device, dtype=torch.bfloat16)
    up = torch.randn(64, hidden, 16, device=device, dtype=torch.bfloat16)
    adapters = torch.arange(64, dtype=torch.int32, device=device)
    scales = torch.ones(64, device=device)
    h = kernels.lora_shrink(x, down, adapters)
    yield Load("lora_shrink", lambda: kernels.lora_shrink(x, down, adapters), num_bytes(x, down))
    yield Load(
        "lora_expand",
        lambda: kernels.lora_expand(x, h, up, scales, adapters),
        2 * num_bytes(x) + num_bytes(up),
    )


def bandwidth(load: Load, device: torch.device) -> Row:
    """Time and rate of a load, and the time that a plain copy of as many bytes takes."""
    took = seconds(load.call, device)
    copied = copy_seconds(load.moved, device)
    return {
        "kernel": load.name,
        "mb": load.moved / 1e6,
        "us": took * 1e6,
        "gb_s": load.moved / took / 1e9,
        "copy_gb_s": load.moved / copied / 1e9,
        "of_copy": copied / took,
    }
