"""Requests of the whole engine on `tiny`: alone, and in a crowd."""

import pytest

from reference_engine.engine.block import BlockPool
from reference_engine.engine.core import EngineCore
from reference_engine.engine.request import Request, Sampling, Scoring, Stopping
from reference_engine.engine.runner import Runner
from reference_engine.engine.scheduler import Scheduler, SchedulerLimits
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.load import LoadedModel, load_model
from tests.reference_engine.engine.fakes import Collected, run


def seeded(index: int) -> Request:
    """Prompts of 3 to 158 tokens, so that chunks and decodes mix."""
    prompt = tuple(1 + (index * 37 + i * 11) % 1000 for i in range(3 + index * 5))
    return Request(
        prompt=prompt,
        sampling=Sampling(seed=index, temperature=1.0),
        stopping=Stopping(max_tokens=12, ignore_eos=True),
        scoring=Scoring(output=True),
    )


def run_together(loaded: LoadedModel, *requests: Request) -> list[Collected]:
    scheduler = Scheduler(BlockPool(512, 16), SchedulerLimits(32, 128))
    runner = Runner(loaded.model, KVCache.allocate(loaded.config, 512, 16))
    return run(EngineCore(scheduler, runner, loaded.tokenizer, 2048), *requests)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_seeded_tokens_are_the_same_alone_and_among_32(dtype: str) -> None:
    """The tokens and the last bit of their log-probabilities, in both types of products."""
    loaded = load_model("tiny", dtype=dtype)
    requests = [seeded(index) for index in range(32)]
    together = run_together(loaded, *requests)
    for index in (0, 1, 7, 31):
        (alone,) = run_together(loaded, requests[index])
        assert len(alone.ids()) == 12
        assert together[index].tokens() == alone.tokens()
