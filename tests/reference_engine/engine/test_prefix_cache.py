"""Reuse of blocks between requests, as whole requests through the core see it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_engine.engine.block_hash import extra_keys, hash_block
from reference_engine.engine.cache_events import BlocksRemoved, BlocksStored, CacheCleared
from reference_engine.engine.request import CacheUse, CandidateMode, CandidateSelection, Scoring
from tests.reference_engine.engine.fakes import build, collect, random_model, request, run
from tests.reference_engine.engine.machine import CacheMirror

BLOCK = 4
PROMPT = b"the same beginning"  # 18 tokens: 4 full blocks and 2 tokens.


def cached(core, prompt=PROMPT, **use) -> int:
    """How many prompt tokens a request takes from the cache."""
    one = replace(request(prompt, max_tokens=2, ignore_eos=True), cache=CacheUse(**use))
    (result,) = run(core, one)
    return result.events[-1].usage.cached_prompt_tokens


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (PROMPT, 16),
        (PROMPT[:17], 16),
        (PROMPT[:16], 12),
        (PROMPT + b" and more", 16),
        (PROMPT[:9] + b"?" * 9, 8),
        (b"?" + PROMPT, 0),
    ],
)
def test_full_blocks_of_the_common_beginning(prompt, expected):
    """Full blocks of the longest common beginning are reused; one token is always computed."""
    core = build(random_model(), block_size=BLOCK).core
    assert cached(core) == 0
    assert cached(core, prompt) == expected


def test_output_is_cached_too():
    """A prompt that goes on from an earlier output finds its blocks."""
    core = build(random_model(), block_size=BLOCK).core
    (first,) = run(core, request(PROMPT, max_tokens=8, ignore_eos=True))
    # 18 + 8 tokens, of which the last was drawn but never computed: 6 full blocks.
    assert cached(core, PROMPT + bytes(first.ids()) + b"!") == 24


def test_reuse_changes_no_token():
    """Greedy and seeded outputs are the same with a cold and a warm cache."""
    model = random_model()
    for temperature in (0.0, 1.0):
        one = request(PROMPT, max_tokens=20, temperature=temperature, seed=5)
        core = build(model, block_size=BLOCK).core
        cold, warm = run(core, one)[0], run(core, one)[0]
        assert warm.events[-1].usage.cached_prompt_tokens == 16
        assert cold.ids() == warm.ids()


def test_bypass():
    """A request that bypasses the cache takes nothing from it and leaves nothing in it."""
    built = build(random_model(), block_size=BLOCK)
    assert cached(built.core, bypass=True) == 0
    assert built.scheduler.cache.prefixes() == ()
    assert cached(built.core) == 0
    assert cached(built.core, bypass=True) == 0


def test_salts_and_keys_divide_the_cache():
    """Only requests with equal salt and keys share blocks; no salt is not the empty salt."""
    core = build(random_model(), num_blocks=256, block_size=BLOCK).core
    uses = [{}, {"salt": "a"}, {"salt": "b"}, {"salt": ""}, {"keys": ("x",)}, {"keys": ("x", "y")}]
    assert [cached(core, **use) for use in uses] == [0] * 6
    assert [cached(core, **use) for use in uses] == [16] * 6


def test_outputs_of_a_request_share_its_prompt():
    """Several outputs hold the prompt once; what was cached is counted once."""
    built = build(random_model(), num_blocks=128, block_size=BLOCK)
    one = request(PROMPT, max_tokens=12, num_sequences=4, temperature=1.0, ignore_eos=True)
    opened = built.core.add(replace(one, cache=CacheUse(bypass=True)))
    emitted = built.core.step()
    # 5 blocks of the prompt; nobody has written yet.
    assert built.pool.num_used == 5
    emitted += [event for _ in range(4) for event in built.core.step()]
    assert built.pool.num_used < 4 * 5
    while built.core.busy:
        emitted += built.core.step()
    assert built.pool.num_free == built.pool.num_blocks
    (again,) = run(built.core, one)
    assert again.events[-1].usage.cached_prompt_tokens == 0
    (third,) = run(built.core, one)
    assert third.events[-1].usage.cached_prompt_tokens == 16
    assert [third.ids(index) for index in range(4)] == [
        collect(opened, emitted).ids(index) for index in range(4)
    ]


@pytest.mark.parametrize("start", [0, 1, 10, 17, 18])
def test_prompt_scores_with_a_warm_cache(start):
    """Prompt scores are the same with a warm cache, whose use ends where the scores begin."""
    model = random_model()
    scoring = Scoring(
        prompt_start=start, prompt_candidates=CandidateSelection(CandidateMode.TOP_N, 3)
    )
    one = request(PROMPT, scoring=scoring, max_tokens=2, ignore_eos=True)
    core = build(model, block_size=BLOCK).core
    (cold,) = run(core, one)
    (warm,) = run(core, one)
    assert warm.prompt() == cold.prompt()
    assert len(warm.prompt()) == len(PROMPT) - start
    assert warm.events[-1].usage.cached_prompt_tokens == max(0, min(start - 1, 17)) // 4 * 4


def test_least_recently_used_content_goes_first():
    """Content of old requests makes room for new ones; what was used since stays."""
    core = build(random_model(), num_blocks=16, block_size=BLOCK).core
    prompts = [bytes([65 + number]) * 17 for number in range(4)]
    for number in (0, 1, 2, 0, 3):
        cached(core, prompts[number])
    assert cached(core, prompts[0]) == 16
    assert cached(core, prompts[1]) < 16


def test_events_mirror_the_cache():
    """Whoever follows the events knows what is cached, over reuse, eviction and a fault."""
    built = build(random_model(), num_blocks=12, block_size=BLOCK)
    events = []
    cache = built.scheduler.cache
    mirror = CacheMirror(cache.events)
    stop = cache.events.subscribe(events.extend)
    for number in range(5):
        cached(built.core, bytes([65 + number // 2]) * 15, salt="a")
        assert mirror.digests == {prefix.digest for prefix in cache.prefixes()}
    assert any(isinstance(event, BlocksRemoved) for event in events)
    first = events[0]
    assert isinstance(first, BlocksStored)
    assert (first.parent, first.token_ids) == (None, (65,) * 12)
    assert first.keys == (("salt:a",), (), ())
    built.core.fail_all("broken")
    assert events[-1] == CacheCleared()
    assert mirror.digests == set()
    stop()
    count = len(events)
    cached(built.core)
    assert len(events) == count


def test_cleared_while_in_use():
    """Clearing the cache leaves a running request its blocks, and nothing of it comes back."""
    built = build(random_model(), block_size=BLOCK)
    one = request(PROMPT, max_tokens=20, ignore_eos=True)
    opened = built.core.add(one)
    emitted = built.core.step()
    built.scheduler.cache.clear()
    while built.core.busy:
        emitted += built.core.step()
    assert cached(built.core) == 0
    (again,) = run(build(random_model(), block_size=BLOCK).core, one)
    assert collect(opened, emitted).ids() == again.ids()


CONTENT = st.tuples(
    st.sampled_from([b"", b"parent"]),
    st.lists(st.integers(0, 2**32 - 1), max_size=4).map(tuple),
    st.lists(st.text(max_size=3), max_size=3).map(tuple),
)


@given(CONTENT, CONTENT)
def test_digests_tell_contents_apart(one, other):
    """Equal digests mean equal parent, tokens and keys, however the keys are cut."""
    assert (hash_block(*one) == hash_block(*other)) == (one == other)


def test_extra_keys():
    """The salt is part of the first block, an adapter of every block; they are told apart."""
    use = CacheUse(salt="s", keys=("a",))
    assert [extra_keys(use, index) for index in range(2)] == [("key:a", "salt:s"), ("key:a",)]
    assert extra_keys(CacheUse(keys=("salt:s",)), 0) != extra_keys(CacheUse(salt="s"), 0)
