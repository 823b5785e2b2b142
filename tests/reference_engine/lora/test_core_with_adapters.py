"""Adapters inside the engine core: outputs, scores, preemption and the prefix cache."""

import dataclasses

import pytest

from reference_engine.engine.request import (
    CacheUse,
    CandidateMode,
    CandidateSelection,
    Scoring,
)
from reference_engine.lora.peft_directory import read_adapter
from tests.reference_engine.engine.fakes import build, random_model, request, run
from tests.reference_engine.lora.build import SHAPES, merge, write_adapter

PROMPT = b"a prompt of several blocks"


@pytest.fixture(scope="module")
def adapters(tmp_path_factory):
    root = tmp_path_factory.mktemp("adapters")
    return {
        key: read_adapter(str(write_adapter(root / key, seed=seed)), SHAPES, 8).weights
        for seed, key in enumerate("xy", start=5)
    }


def core_with(adapters, **sizes):
    built = build(random_model().prepare(), **sizes)
    for key, weights in adapters.items():
        built.core.put_adapter(key, weights)
    return built


def using(key, prompt=PROMPT, **options):
    """A request that names an adapter, None for the base."""
    keys = () if key is None else (key,)
    return dataclasses.replace(request(prompt, **options), adapter=key, cache=CacheUse(keys=keys))


def ids(adapters, *requests, **sizes):
    return [one.ids() for one in run(core_with(adapters, **sizes).core, *requests)]


def test_greedy_output_of_merged_weights(adapters):
    """Token by token what the base with the product added generates."""
    for key, weights in adapters.items():
        (merged,) = run(build(merge(random_model(), weights)).core, request(PROMPT, max_tokens=32))
        (found,) = ids(adapters, using(key, max_tokens=32))
        assert found == merged.ids()
    (base,) = ids(adapters, using(None, max_tokens=32))
    assert base != found


def test_the_same_alone_in_a_batch_and_after_preemption(adapters):
    """Seeded and greedy outputs of 24 mixed requests, with room for all and with too little."""
    requests = [
        using(
            ("x", "y", None)[number % 3],
            PROMPT[number % 7 :],
            seed=number,
            temperature=number % 2,
            max_tokens=20,
        )
        for number in range(24)
    ]
    alone = [ids(adapters, one)[0] for one in requests]
    assert ids(adapters, *requests, num_blocks=512) == alone
    tight = core_with(adapters, num_blocks=40)
    found = [one.ids() for one in run(tight.core, *requests)]
    assert tight.scheduler.preemptions > 0
    assert found == alone


def test_several_outputs_and_prompt_scores(adapters):
    """Several outputs and prompt logprobs are those of the merged weights."""
    scoring = Scoring(
        output=True,
        prompt_start=0,
        prompt_candidates=CandidateSelection(CandidateMode.TOP_N, top_n=3),
    )
    options = {"num_sequences": 3, "temperature": 1.0, "scoring": scoring}
    (found,) = run(core_with(adapters).core, using("x", **options))
    (expected,) = run(build(merge(random_model(), adapters["x"])).core, request(PROMPT, **options))
    for index in range(3):
        assert found.ids(index) == expected.ids(index)
        assert [one.score.logprob for one in found.tokens(index)] == pytest.approx(
            [one.score.logprob for one in expected.tokens(index)], abs=1e-4
        )
    assert [one.score.logprob for one in found.prompt()[1:]] == pytest.approx(
        [one.score.logprob for one in expected.prompt()[1:]], abs=1e-4
    )


def test_the_prefix_cache_keeps_adapters_apart(adapters):
    """Only the same adapter, not another, a later load or the base, finds its blocks."""
    core = core_with({**adapters, "x again": adapters["x"]}).core

    def cached(key):
        (one,) = run(core, using(key))
        return one.finish().usage.cached_prompt_tokens

    assert [cached(key) for key in ("x", "y", None, "x again")] == [0, 0, 0, 0]
    assert cached("x") == cached(None) == len(PROMPT) // 4 * 4
