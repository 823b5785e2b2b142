"""The engine against transformers and llama.cpp, and what is lost on the way to a client.

`python bench/engine.py` prints everything as ratios of one run; see bench/README.md.
"""

import argparse
import gc
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

# Idle threads that spin take the core from those that work; has to be set before torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.ours import BLOCK_SIZE, Ours, engine_config, token_bytes
from bench.overhead import overhead
from bench.served import serve
from bench.with_llama_cpp import WithLlamaCpp
from bench.with_transformers import WithTransformers
from bench.workload import Workload, ragged, uniform
from reference_engine.engine.request import Sampling
from reference_engine.errors import ModelNotFoundError
from reference_engine.model.catalog import locate
from reference_engine.model.load import LoadedModel, load_model
from reference_engine.model.load_gguf import load_gguf

MIB = 1024 * 1024
MANY = 64


class Side(Protocol):
    """Something that generates."""

    def seconds(self, workload: Workload) -> float:
        """Of wall time for all prompts and outputs."""
        ...


def main() -> int:
    """0, or 2 when the model is not on this machine."""
    options = _options()
    torch.set_num_threads(options.threads)
    try:
        path, _ = locate("smollm2")
    except ModelNotFoundError as error:
        print(error)
        return 2
    print(_machine(options.threads))
    loaded = load_model("smollm2")
    vocab = loaded.config.vocab_size
    batches = [uniform(batch, options.prompt, options.output, vocab) for batch in (1, 16)]
    many = ragged(MANY, options.prompt, 4 * options.output, vocab)
    parts: dict[str, Callable[[], Iterator[str]]] = {
        "transformers": lambda: _against_transformers(path, loaded, [*batches, many], options),
        "llama.cpp": lambda: _against_llama_cpp(path, loaded, batches, options),
        "overhead": lambda: _overhead(loaded),
        "grpc": lambda: _through_grpc(path, loaded, batches[1], options),
    }
    for name, part in parts.items():
        if name not in options.skip:
            for line in part():
                print(line, flush=True)
    return 0


def _against_transformers(
    path: Path, loaded: LoadedModel, workloads: list[Workload], options: argparse.Namespace
) -> Iterator[str]:
    try:
        theirs = WithTransformers(path)
    except ImportError as error:
        yield f"\ntransformers: skipped, {error}"
        return
    yield f"\n{theirs.version} generate, float32, same weights (tokens/s of output)"
    sides: dict[str, Side] = {"theirs": theirs, "float32": Ours(loaded)}
    auto = load_model("smollm2", dtype="auto")
    if auto.dtype != torch.float32:
        sides[str(auto.dtype).removeprefix("torch.")] = Ours(auto)
    yield from _compare(workloads, sides, options.rounds)


def _against_llama_cpp(
    path: Path, loaded: LoadedModel, workloads: list[Workload], options: argparse.Namespace
) -> Iterator[str]:
    slots = max(len(workload.prompts) for workload in workloads)
    try:
        theirs = WithLlamaCpp(path, options.threads, slots, options.prompt + options.output + 16)
    except ImportError as error:
        yield f"\nllama.cpp: skipped, {error}"
        return
    yield f"\nllama.cpp ({theirs.version}), Q4_1 weights as in the file (tokens/s of output)"
    sides: dict[str, Side] = {"theirs": theirs, "float32": Ours(loaded)}
    auto = load_model("smollm2", dtype="auto")
    if auto.dtype != torch.float32:
        sides[str(auto.dtype).removeprefix("torch.")] = Ours(auto)
    yield from _compare(workloads, sides, options.rounds)


def _compare(workloads: list[Workload], sides: dict[str, Side], rounds: int) -> Iterator[str]:
    """Rates of all sides, which take turns, so that other load on the machine meets all alike."""
    for side in sides.values():
        side.seconds(Workload("warm-up", workloads[0].prompts, (2,)))
    # As a serving engine does: what was imported and loaded is not searched for garbage again.
    gc.freeze()
    for workload in workloads:
        best = dict.fromkeys(sides, float("inf"))
        # Many requests are a mean already.
        for _ in range(rounds if len(workload.prompts) < MANY else 1):
            for name, side in sides.items():
                best[name] = min(best[name], _seconds(side, workload))
        theirs = workload.num_outputs / best.pop("theirs")
        line = f"  {workload.name:<10} theirs {theirs:7.1f}"
        for name, seconds in best.items():
            ours = workload.num_outputs / seconds
            line += f"   ours {name} {ours:7.1f} = {ours / theirs:5.2f} x"
        yield line


def _seconds(side: Side, workload: Workload) -> float:
    """Of the processor with one thread: waiting for a core that others use doesn't count. With
    more threads of wall time, because one that waits for another counts.
    """
    before = time.process_time()
    wall = side.seconds(workload)
    return time.process_time() - before if torch.get_num_threads() == 1 else wall


def _overhead(loaded: LoadedModel) -> Iterator[str]:
    yield "\nA step outside the model, 64 decoding sequences (median ms)"
    for model in (load_model("tiny"), loaded):
        for sampling in (Sampling(0, 0.0), Sampling(0, 0.8, top_p=0.9)):
            one = overhead(model, 64, sampling)
            yield (
                f"  {model.name:<8} {one.vocab_size:>6} tokens, {one.sampling:<18} "
                f"{one.milliseconds:7.3f}"
            )


def _through_grpc(
    path: Path, loaded: LoadedModel, workload: Workload, options: argparse.Namespace
) -> Iterator[str]:
    yield "\nThrough gRPC, server and client on the same cores, float32 (tokens/s of output)"
    ours = Ours(loaded)
    with serve("smollm2", "--threads", str(options.threads), "--dtype", "float32") as served:
        before = served.memory()
        best = {"engine": float("inf"), "served": float("inf")}
        for _ in range(options.rounds):
            best["engine"] = min(best["engine"], ours.seconds(workload))
            best["served"] = min(best["served"], served.seconds(workload))
        after = served.memory()
    engine, through = (workload.num_outputs / seconds for seconds in best.values())
    yield (
        f"  {workload.name:<10} engine {engine:7.1f}   served {through:7.1f} = "
        f"{through / engine:5.2f} x"
    )
    config = engine_config(loaded)
    pool = config.num_blocks * BLOCK_SIZE * token_bytes(loaded)
    # Those of the loaded model are packed by now, and no longer parameters.
    weights = sum(weight.numel() * 4 for weight in load_gguf(path)[0].parameters())
    yield "\nMemory of the serving process (MiB)"
    yield f"  weights {weights / MIB:.0f}, KV pool {pool / MIB:.0f} (fixed at start)"
    yield f"  resident when ready {before / MIB:.0f}, after the runs {after / MIB:.0f}"


def _machine(threads: int) -> str:
    cpu = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        names = [line for line in information.read_text().splitlines() if "model name" in line]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    load = os.getloadavg()[0]
    return (
        f"{cpu}, {os.cpu_count()} cores, {threads} threads used, torch {torch.__version__}; "
        f"load of the machine before the run {load:.1f}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ratios of the reference engine.")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--prompt", type=int, default=32, help="tokens of a prompt")
    parser.add_argument("--output", type=int, default=24, help="tokens of an output")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each; the best one counts")
    parser.add_argument(
        "--skip",
        nargs="*",
        default=[],
        choices=["transformers", "llama.cpp", "overhead", "grpc"],
        help="parts to leave out",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
