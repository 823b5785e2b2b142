"""Kernels, graphs and the engine on a GPU: `python bench/gpu.py`, see docs/gpu.md.

Prints tables and writes everything as JSON. Exits with 1 if a result is wrong or a part failed.
`--trial` runs all of it in small on the CPU, to try the script itself.
"""

import argparse
import json
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import gpu_kernels, gpu_model
from reference_engine.kernels.dispatch import TORCH, kernels_for

Row = dict[str, object]


def main() -> int:
    """0 if every part ran and every result is right."""
    options = _options()
    if not options.trial and not torch.cuda.is_available():
        print("no GPU: torch.cuda.is_available() is False (--trial runs on the CPU)")
        return 2
    # The current device by number: tensors have one, and devices are compared.
    device = torch.device("cpu") if options.trial else torch.device("cuda", 0)
    machine = describe(device)
    print("  ".join(f"{key}: {value}" for key, value in machine.items()), flush=True)
    report: dict[str, object] = {"machine": machine}
    right = True
    for name, part in parts(device, trial=options.trial).items():
        rows, fault = run(name, part)
        report[name] = {"rows": rows, "fault": fault}
        right &= fault is None and all(row.get("ok", True) for row in rows)
        # After every part: a run that is stopped keeps what it has.
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1, default=str) + "\n")
    print(f"{'all right' if right else 'NOT ALL RIGHT'}; written to {options.json}")
    return 0 if right else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=Path("gpu.json"), help="where to write")
    parser.add_argument("--trial", action="store_true", help="small, on the CPU")
    return parser.parse_args()


def describe(device: torch.device) -> Row:
    """What the figures depend on."""
    facts: Row = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "kernels": kernels_for(device).name,
    }
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        facts["gpu"] = properties.name
        facts["multiprocessors"] = properties.multi_processor_count
        facts["gib"] = round(properties.total_memory / 2**30)
        if kernels_for(device).name == "triton":
            import triton  # noqa: PLC0415

            facts["triton"] = triton.__version__
    return facts


def parts(device: torch.device, *, trial: bool) -> dict[str, Callable[[], Iterable[Row]]]:
    """The parts in order: what must be right first, what takes longest last."""
    kernels = kernels_for(device)
    scale = 64 if trial else 1
    models = ["trial"] if trial else ["SmolLM2-135M", "Qwen3-0.6B"]
    requests, longest = (4, 40) if trial else (256, 1024)
    return {
        "errors": lambda: gpu_kernels.case_errors(kernels, device),
        "twin_errors": lambda: gpu_kernels.case_errors(TORCH, device),
        "decode_errors": lambda: gpu_kernels.large_decode(kernels, device, 6000 // scale + 300),
        "prefill": lambda: gpu_kernels.prefill(device, 1024 // scale),
        "bandwidth": lambda: (
            gpu_kernels.bandwidth(load, device)
            for load in gpu_kernels.loads(kernels, device, scale)
        ),
        "decode": lambda: (
            row for model in models for row in gpu_model.decode_steps(model, device, 512 // scale)
        ),
        "end_to_end": lambda: (
            gpu_model.end_to_end(model, device, requests, longest) for model in models
        ),
    }


def run(name: str, part: Callable[[], Iterable[Row]]) -> tuple[list[Row], str | None]:
    """The rows of a part, printed as they come, and its trace if it failed."""
    print(f"\n{name}", flush=True)
    start = time.perf_counter()
    rows: list[Row] = []
    fault = None
    try:
        for row in part():
            rows.append(row)
            # Right results of many cases would bury the figures.
            if "tolerance" not in row or not row.get("ok", True):
                print("  " + "  ".join(f"{key} {_short(value)}" for key, value in row.items()))
            sys.stdout.flush()
    except Exception:  # noqa: BLE001  # one part must not cost the others on a borrowed machine
        fault = traceback.format_exc()
        print(fault)
    wrong = sum(not row.get("ok", True) for row in rows)
    print(f"  {len(rows)} rows, {wrong} wrong, {time.perf_counter() - start:.1f} s", flush=True)
    return rows, fault


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
