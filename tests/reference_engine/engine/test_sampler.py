"""Draws and filters against naive references over the fully sorted distribution."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.engine.draw import draw
from reference_engine.engine.history import TokenHistory
from reference_engine.engine.penalties import penalise
from reference_engine.engine.request import Request, Sampling, Stopping
from reference_engine.engine.sampler import Sampler
from reference_engine.engine.sequence import Sequence
from reference_engine.engine.token_mask import TokenMasks
from reference_engine.engine.uniform import uniform

EOS = frozenset((3,))


def naive_kept(row: torch.Tensor, sampling: Sampling) -> dict[int, float]:
    """Kept tokens and their probabilities, by sorting everything."""
    probabilities = torch.softmax(row.double() / sampling.temperature, 0).tolist()
    ranked = sorted(range(len(probabilities)), key=lambda token: -probabilities[token])
    if sampling.top_k:
        ranked = ranked[: sampling.top_k]
    mass = sum(probabilities[token] for token in ranked)
    kept, before = [], 0.0
    for token in ranked:
        if kept and before >= sampling.top_p * mass:
            break
        kept.append(token)
        before += probabilities[token]
    best = probabilities[ranked[0]]
    kept = [token for token in kept if probabilities[token] >= sampling.min_p * best]
    total = sum(probabilities[token] for token in kept)
    return {token: probabilities[token] / total for token in kept}


def naive_draw(kept: dict[int, float], number: float) -> int:
    cumulative = 0.0
    for token in sorted(kept):
        cumulative += kept[token]
        if number < cumulative:
            return token
    return max(kept)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([5, 40, 700]),
    st.sampled_from([0.3, 1.0, 3.0]),
    st.sampled_from([1.0, 0.999, 0.9, 0.5, 0.01]),
    st.sampled_from([0, 1, 3, 300]),
    st.sampled_from([0.0, 0.001, 0.2, 1.0]),
    st.floats(0.001, 0.999),
)
def test_draw_matches_full_sort(seed, vocabulary, temperature, top_p, top_k, min_p, number):
    """Filters keep, and the inverse CDF picks, what a full sort says."""
    generator = torch.Generator().manual_seed(seed)
    row = torch.randn(vocabulary, generator=generator) * 2
    sampling = Sampling(0, temperature=temperature, top_p=top_p, top_k=top_k, min_p=min_p)
    kept = naive_kept(row, sampling)
    (token,) = draw(row[None], [sampling], [number])
    assert token in kept
    # A number on a border may fall to either side of it.
    assert token in {naive_draw(kept, number + shift) for shift in (-1e-6, 0.0, 1e-6)}


def test_draws_follow_the_distribution():
    """10,000 draws of one row fit its probabilities (chi-square, 7 degrees, 0.1 % point 24.3)."""
    row = torch.tensor([0.0, 1.0, 2.0, -1.0, 0.5, 1.5, -0.5, 0.2])
    expected = torch.softmax(row.double(), 0).tolist()
    sampling = Sampling(seed=11)
    count = 10_000
    numbers = [uniform(11, 0, index) for index in range(count)]
    drawn = Counter(draw(row.expand(count, -1), [sampling] * count, numbers))
    chi = sum(
        (drawn[token] - count * share) ** 2 / (count * share)
        for token, share in enumerate(expected)
    )
    assert chi < 24.3


def test_uniform_is_flat_and_independent():
    """Numbers fill [0, 1) evenly along tokens, outputs and seeds (0.1 % point of 15 is 37.7)."""
    for along in (
        [uniform(5, 0, index) for index in range(4000)],
        [uniform(5, index, 0) for index in range(4000)],
        [uniform(index, 0, 0) for index in range(4000)],
    ):
        bins = Counter(int(number * 16) for number in along)
        assert set(bins) == set(range(16))
        assert sum((bins[at] - 250) ** 2 / 250 for at in range(16)) < 37.7
    assert len({uniform(2**64 - 1 - index, 0, 0) for index in range(100)}) == 100


@pytest.mark.parametrize("number", [0.0, math.nextafter(1.0, 0.0)])
def test_edges_of_the_draw(number):
    """The ends of [0, 1) fall on possible tokens, also beside impossible ones."""
    row = torch.tensor([-torch.inf, 1.0, 0.5, -torch.inf])
    for filters in ({}, {"top_p": 0.999}, {"top_k": 3}, {"min_p": 0.1}):
        (token,) = draw(row[None], [Sampling(0, **filters)], [number])
        assert token == (1 if number == 0.0 else 2)


def sequence(prompt=(1, 2), output=(), **stopping) -> Sequence:
    sampling = stopping.pop("sampling", Sampling(0, temperature=0.0))
    request = Request(tuple(prompt), sampling, Stopping(**stopping))
    return Sequence(request, 0, 0, None, 10, [*prompt, *output])


def test_penalties():
    """Repetition looks at prompt and output, frequency and presence at the output."""
    sampling = Sampling(0, frequency_penalty=0.5, presence_penalty=0.25, repetition_penalty=2.0)
    logits = torch.tensor([[0.0] * 5, [1.0, 1.0, -1.0, 1.0, 1.0]])
    penalise(logits, [1], [sequence((1, 2), (3, 3), sampling=sampling)])
    assert logits[0].tolist() == [0.0] * 5
    assert logits[1].tolist() == [1.0, 0.5, -2.0, 0.5 - 0.5 * 2 - 0.25, 1.0]


@pytest.mark.parametrize("penalty", [1e308, -1e308])
def test_huge_penalties_stay_finite(penalty):
    """Penalties that overflow float32 neither raise nor give an impossible token."""
    sampling = Sampling(0, frequency_penalty=penalty, repetition_penalty=1e308, temperature=1.0)
    one = sequence((1, 2), (3, 4), sampling=sampling)
    (token,) = Sampler(frozenset()).sample(torch.zeros(1, 6), [one])
    assert 0 <= token < 6


def test_masks():
    """EOS and stop tokens are masked before min_tokens, EOS alone under ignore_eos."""
    logits = torch.tensor([[0.0, 1.0, 2.0, 3.0, 2.5]])
    sampler = Sampler(EOS)
    stops = {"stop_token_ids": frozenset((4,))}
    assert sampler.sample(logits, [sequence()]) == [3]
    assert sampler.sample(logits, [sequence(min_tokens=1, **stops)]) == [2]
    assert sampler.sample(logits, [sequence(output=(1,), min_tokens=1, **stops)]) == [3]
    assert sampler.sample(logits, [sequence(ignore_eos=True)]) == [4]
    beyond = {"stop_token_ids": frozenset((2**32 - 1,))}
    assert sampler.sample(logits, [sequence(min_tokens=1, **beyond)]) == [4]
    both = {"stop_token_ids": EOS}
    assert sampler.sample(logits, [sequence(ignore_eos=True, **both)]) == [3]
    assert logits.tolist() == [[0.0, 1.0, 2.0, 3.0, 2.5]]


def test_rows_do_not_influence_each_other():
    """A row with any options draws in a batch, wherever it is, what it draws alone."""
    generator = torch.Generator().manual_seed(3)
    options = [
        {"temperature": 0.0},
        {},
        {"top_p": 0.8},
        {"top_p": 0.9999},
        {"top_k": 5},
        {"top_k": 1500, "top_p": 0.9},
        {"min_p": 0.1},
        {"temperature": 5.0, "top_p": 0.95},
        {"repetition_penalty": 1.5, "frequency_penalty": 0.3},
    ]
    rows = [
        sequence(sampling=Sampling(number, **options[number % len(options)]), min_tokens=number % 3)
        for number in range(40)
    ]
    logits = torch.randn(40, 2500, generator=generator) * 3
    sampler = Sampler(EOS)
    single = [sampler.sample(logits[row : row + 1], [one])[0] for row, one in enumerate(rows)]
    assert sampler.sample(logits, rows) == single
    assert sampler.sample(logits.flip(0), rows[::-1]) == single[::-1]
    assert sampler.sample(logits[7:24], rows[7:24]) == single[7:24]


@pytest.mark.parametrize("vocabulary", [2, 64, 65, 256, 257, 1500])
def test_top_1_is_greedy(vocabulary):
    """With top_k 1, and with a top_p or a temperature near 0, the greedy token is drawn."""
    generator = torch.Generator().manual_seed(vocabulary)
    # Few distinct values, so that the best one is shared: the lowest id wins.
    logits = torch.randint(0, 3, (20, vocabulary), generator=generator).float()
    best = logits.argmax(dim=1).tolist()
    numbers = [number / 20 for number in range(20)]
    assert draw(logits, [Sampling(0, top_k=1)] * 20, numbers) == best
    assert draw(logits, [Sampling(0, top_p=1e-9)] * 20, numbers) == best
    logits += torch.linspace(0, -0.5, vocabulary)
    assert (
        draw(logits, [Sampling(0, temperature=1e-300)] * 20, numbers)
        == logits.argmax(dim=1).tolist()
    )


def test_flat_distributions():
    """Filters that reach beyond the best tokens, up to all of them, keep what they say."""
    logits = torch.zeros(3, 3000)
    samplings = [
        Sampling(0, top_p=0.5),
        Sampling(0, top_p=0.999999),
        Sampling(0, temperature=1e300),
    ]
    assert draw(logits, samplings, [0.9999] * 3) == [1499, 2999, 2999]


def bits(allowed: set[int], vocabulary: int) -> torch.Tensor:
    """A grammar's mask, int32 [1, words]."""
    words = np.zeros(-(-vocabulary // 32), dtype=np.uint32)
    for token in allowed:
        words[token // 32] |= np.uint32(1) << np.uint32(token % 32)
    return torch.from_numpy(words.view(np.int32))[None]


@pytest.mark.parametrize("vocabulary", [31, 32, 33, 100])
def test_grammar_masks(vocabulary):
    """Listed rows draw allowed tokens only, greedy or not; other rows draw as before."""
    logits = torch.randn(3, vocabulary, generator=torch.Generator().manual_seed(1))
    allowed = {0, 7, 30, vocabulary - 1}
    masks = TokenMasks((0, 2), bits(allowed, vocabulary).repeat(2, 1))
    rows = [sequence(), sequence(), sequence(sampling=Sampling(5, repetition_penalty=1.2))]
    sampler = Sampler(EOS)
    greedy, free, drawn = sampler.sample(logits, rows, masks)
    assert greedy == max(allowed, key=lambda token: float(logits[0, token]))
    assert free == int(logits[1].argmax())
    assert drawn in allowed


def test_grammar_wins_over_min_tokens():
    """Where a grammar allows nothing but EOS, the output ends before min_tokens."""
    masks = TokenMasks((0,), bits({3}, 5))
    assert Sampler(EOS).sample(torch.zeros(1, 5), [sequence(min_tokens=4)], masks) == [3]
    masks = TokenMasks((0,), bits({3, 4}, 5))
    assert Sampler(EOS).sample(torch.zeros(1, 5), [sequence(min_tokens=4)], masks) == [4]


@given(st.lists(st.integers(0, 400), max_size=300), st.lists(st.integers(0, 400), max_size=300))
def test_history(prompt, output):
    """Distinct tokens and output counts, however the output came."""
    history = TokenHistory(prompt)
    for start in range(0, len(output), 7):
        history.add(output[start : start + 7])
    counted = dict(zip(history.ids.tolist(), history.counts.tolist(), strict=True))
    assert counted == {token: output.count(token) for token in {*prompt, *output}}
    assert history.num_output == len(output)


def test_penalties_follow_the_output():
    """Tokens that came since the last step count in the next one."""
    one = sequence((1,), sampling=Sampling(0, temperature=0.0, presence_penalty=1.0))
    logits = torch.tensor([[3.0, 2.9, 2.8, 2.7]])
    for _ in range(4):
        one.token_ids += Sampler(frozenset()).sample(logits, [one])
    assert one.token_ids[1:] == [0, 1, 2, 3]
