"""The trained small model: every request draws alone what it draws in a full, crowded batch."""

import pytest

from reference_engine.engine.block import BlockPool
from reference_engine.engine.core import EngineCore
from reference_engine.engine.output import Token
from reference_engine.engine.request import (
    CacheUse,
    CandidateMode,
    CandidateSelection,
    Request,
    Sampling,
    Scoring,
    Stopping,
)
from reference_engine.engine.runner import Runner
from reference_engine.engine.scheduler import Scheduler, SchedulerLimits
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.load import LoadedModel, load_model
from tests.reference_engine.engine.fakes import run

BLOCK = 4
OPTIONS = [
    {"temperature": 0.0},
    {},
    {"top_p": 0.9},
    {"top_k": 20, "temperature": 0.7},
    {"min_p": 0.05},
    {"temperature": 1.3, "top_p": 0.95, "min_p": 0.01},
    {"repetition_penalty": 1.3, "frequency_penalty": 0.2, "presence_penalty": 0.1},
    {"temperature": 0.0, "repetition_penalty": 1.2},
]
SCORING = Scoring(
    output=True, output_candidates=CandidateSelection(CandidateMode.TOP_N, 2), prompt_start=3
)


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return load_model("tiny")


def core_of(loaded: LoadedModel, num_blocks: int, running: int) -> tuple[EngineCore, Scheduler]:
    pool = BlockPool(num_blocks, BLOCK)
    scheduler = Scheduler(pool, SchedulerLimits(running, 96))
    runner = Runner(loaded.model, KVCache.allocate(loaded.config, num_blocks, BLOCK))
    window = num_blocks * BLOCK
    return EngineCore(scheduler, runner, loaded.tokenizer, window), scheduler


def requests(loaded: LoadedModel) -> list[Request]:
    """32 requests of all kinds; many begin alike."""
    text = "def __init__(self, *args, **kwargs):\n    " * 3
    encoded = loaded.tokenizer.encode(text, add_special_tokens=False)
    return [
        Request(
            prompt=tuple(encoded[number % 2 : 5 + number]),
            sampling=Sampling(seed=number // 2, **OPTIONS[number % len(OPTIONS)]),
            stopping=Stopping(max_tokens=10 + number % 4, ignore_eos=number % 5 == 0),
            scoring=SCORING if number % 7 == 0 else Scoring(),
            num_sequences=1 + (number % 6 == 0),
            priority=number % 3,
            cache=CacheUse(bypass=number % 11 == 0),
        )
        for number in range(32)
    ]


def drawn(result, request: Request) -> list[list[Token]]:
    prompt = [list(result.prompt())] if request.scoring.prompt_start is not None else []
    return prompt + [result.tokens(index) for index in range(request.num_sequences)]


def test_alone_and_in_a_batch(tiny):
    """Tokens, ranks and log probabilities of 32 requests are equal alone, together, together with
    too few blocks, and once more with a warm cache.
    """
    asked = requests(tiny)
    alone = [drawn(run(core_of(tiny, 64, 1)[0], one)[0], one) for one in asked]
    roomy, _ = core_of(tiny, 1024, 48)
    tight, scheduler = core_of(tiny, 80, 32)
    for core in (roomy, tight, roomy):
        results = run(core, *asked)
        assert [drawn(*pair) for pair in zip(results, asked, strict=True)] == alone
    assert scheduler.preemptions > 0
