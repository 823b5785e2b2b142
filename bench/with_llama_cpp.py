"""llama.cpp's server in this process, on the same GGUF file."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.workload import Workload


class WithLlamaCpp:
    """One slot per request. It multiplies the file's own 4-bit weights, we dequantised ones."""

    def __init__(self, path: Path, threads: int, slots: int, tokens_per_slot: int) -> None:
        import xllamacpp  # noqa: PLC0415  # a developer's tool, perhaps not installed

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_parallel = slots
        params.n_ctx = slots * tokens_per_slot
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.warmup = True
        params.verbosity = -1
        params.port = 0
        self._server = xllamacpp.Server(params)
        self.version = f"xllamacpp {xllamacpp.__version__}"

    def seconds(self, workload: Workload) -> float:
        """Of wall time for all prompts and outputs."""
        start = time.perf_counter()
        with ThreadPoolExecutor(len(workload.prompts)) as pool:
            made = list(pool.map(self._complete, workload.prompts, workload.outputs))
        took = time.perf_counter() - start
        if made != list(workload.outputs):
            raise RuntimeError(f"{made} tokens were made, expected {workload.outputs}")
        return took

    def _complete(self, prompt: tuple[int, ...], output: int) -> int:
        answer: Any = self._server.handle_completions(
            {
                "prompt": list(prompt),
                "n_predict": output,
                "temperature": 0,
                "ignore_eos": True,
                "cache_prompt": False,
            }
        )
        return int(_field(answer, "tokens_predicted"))


def _field(answer: Any, name: str) -> Any:
    if isinstance(answer, list):
        (answer,) = answer
    if name in answer:
        return answer[name]
    return answer["usage"]["completion_tokens"]
