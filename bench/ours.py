"""The engine without its server: the time of a workload in one loop of steps."""

import time

from bench.workload import Workload
from reference_engine.engine.build import build_core
from reference_engine.engine.config import EngineConfig, default_num_blocks
from reference_engine.engine.request import CacheUse, Request, Sampling, Stopping
from reference_engine.model.load import LoadedModel

BLOCK_SIZE = 16
MAX_RUNNING = 64


def engine_config(loaded: LoadedModel) -> EngineConfig:
    """Sizes as `oe-engine serve` chooses them."""
    return EngineConfig(
        default_num_blocks(
            token_bytes(loaded), BLOCK_SIZE, loaded.config.max_position_embeddings, MAX_RUNNING
        ),
        BLOCK_SIZE,
        MAX_RUNNING,
    )


def token_bytes(loaded: LoadedModel) -> int:
    """Keys and values of one token over all layers, in float32."""
    config = loaded.config
    return 2 * 4 * config.num_layers * config.num_kv_heads * config.head_dim


class Ours:
    """One core for all runs; prompts bypass the prefix cache, so that each run computes them."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._core = build_core(loaded, engine_config(loaded))

    def seconds(self, workload: Workload) -> float:
        """Of wall time for all prompts and outputs."""
        start = time.perf_counter()
        for prompt, output in zip(workload.prompts, workload.outputs, strict=True):
            self._core.add(
                Request(
                    prompt=prompt,
                    sampling=Sampling(seed=0, temperature=0.0),
                    stopping=Stopping(max_tokens=output, ignore_eos=True),
                    cache=CacheUse(bypass=True),
                )
            )
        while self._core.busy:
            self._core.step()
        return time.perf_counter() - start
