"""From a loaded model and sizes to an engine core with an empty cache."""

import torch

from reference_engine.engine.block import BlockPool
from reference_engine.engine.config import EngineConfig
from reference_engine.engine.core import EngineCore
from reference_engine.engine.runner import Runner
from reference_engine.engine.scheduler import Scheduler, SchedulerLimits
from reference_engine.guided.guides import Guides
from reference_engine.lora.memory import adapter_memory
from reference_engine.model.cuda_graph import graphed
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.load import LoadedModel


def window_of(loaded: LoadedModel, config: EngineConfig) -> int:
    """Tokens of prompt and output together: what the model and the cache both hold."""
    return min(loaded.config.max_position_embeddings, config.cache_tokens)


def build_core(
    loaded: LoadedModel, config: EngineConfig, guides: Guides | None = None
) -> EngineCore:
    """An engine core with an empty cache."""
    pool = BlockPool(config.num_blocks, config.block_size)
    limits = SchedulerLimits(config.max_running, config.max_batched_tokens)
    device = loaded.model.device
    dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
    cache = KVCache.allocate(loaded.config, config.num_blocks, config.block_size, dtype, device)
    adapters = adapter_memory(loaded.config, config.lora, device)
    runner = Runner(graphed(loaded.model, cache, config.max_running), cache, adapters)
    window = window_of(loaded, config)
    return EngineCore(Scheduler(pool, limits), runner, loaded.tokenizer, window, guides)
