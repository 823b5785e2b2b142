"""Times and rates on a device; on a CPU the same calls work, for trying the script out."""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

WARM_UPS = 3
REPEATS = 20


def seconds(call: Callable[[], object], device: torch.device, repeats: int = REPEATS) -> float:
    """Median time of a call, in seconds; the first calls, which compile, are not counted."""
    for _ in range(WARM_UPS):
        call()
    if device.type != "cuda":
        return statistics.median(_wall(call) for _ in range(repeats))
    marks = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        call()
        end.record()
        marks.append((start, end))
    torch.cuda.synchronize()
    return float(statistics.median(start.elapsed_time(end) for start, end in marks)) / 1000


def _wall(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def copy_seconds(moved: int, device: torch.device) -> float:
    """Time of a plain copy that reads and writes `moved` bytes altogether."""
    source = torch.empty(max(moved // 2, 1), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return seconds(lambda: target.copy_(source), device)


def num_bytes(*tensors: Tensor) -> int:
    """Bytes of the tensors' elements."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
