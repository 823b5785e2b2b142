"""Scores and alternatives against log_softmax and a plain sort."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.engine.logprobs import score_tokens
from reference_engine.engine.request import NO_CANDIDATES, CandidateMode, CandidateSelection

TOP_5 = CandidateSelection(CandidateMode.TOP_N, 5)
EVERY = CandidateSelection(CandidateMode.ALL)


def ranked(row: torch.Tensor) -> list[int]:
    values = row.tolist()
    return sorted(range(len(values)), key=lambda token: (-values[token], token))


# Few distinct values, so that ties are common.
ROWS = st.lists(st.sampled_from([0.0, 1.0, 2.5, -3.0]), min_size=6, max_size=20)


@settings(deadline=None)
@given(ROWS, st.data())
def test_ranks_and_candidates(values, data):
    """Ranks are 1..n without repeats, candidates follow the ranking, and values agree."""
    row = torch.tensor(values)
    token = data.draw(st.integers(0, len(values) - 1))
    expected = torch.log_softmax(row, 0)
    order = ranked(expected)
    asked = tuple(data.draw(st.permutations(range(len(values))))[:3])
    for selection, ids in (
        (TOP_5, order[:5]),
        (EVERY, order),
        (CandidateSelection(CandidateMode.TOKEN_IDS, token_ids=asked), list(asked)),
    ):
        (score,) = score_tokens(row[None], [token], [selection])
        assert score.logprob == pytest.approx(float(expected[token]), abs=1e-5)
        assert score.rank == order.index(token) + 1
        assert list(score.candidates.token_ids) == ids
        assert list(score.candidates.ranks) == [order.index(one) + 1 for one in ids]
        for one, logprob in zip(ids, score.candidates.logprobs, strict=True):
            assert logprob == pytest.approx(float(expected[one]), abs=1e-5)


def test_all_candidates_sum_to_one():
    """The probabilities of the whole vocabulary add up to 1."""
    (score,) = score_tokens(torch.randn(1, 500), [4], [EVERY])
    assert torch.tensor(score.candidates.logprobs).double().exp().sum() == pytest.approx(
        1, abs=1e-4
    )


def test_a_certain_token_is_not_above_zero():
    """Rounding never lifts a log probability above 0."""
    logits = torch.full((1, 1000), -60.0)
    logits[0, 7] = 60.0
    (score,) = score_tokens(logits, [7], [TOP_5])
    assert score.logprob == 0.0
    assert all(value <= 0 for value in score.candidates.logprobs)


def test_without_candidates():
    """No selection gives none; an empty list of ids or top 0 gives an empty one."""
    logits = torch.zeros(1, 9)
    assert score_tokens(logits, [0], [NO_CANDIDATES])[0].candidates is None
    for empty in (
        CandidateSelection(CandidateMode.TOKEN_IDS),
        CandidateSelection(CandidateMode.TOP_N, 0),
    ):
        assert score_tokens(logits, [0], [empty])[0].candidates.token_ids == ()


def test_rows_with_different_selections():
    """Each row of a batch gets its own alternatives, as if it were alone."""
    logits = torch.randn(6, 300, generator=torch.Generator().manual_seed(2))
    many = CandidateSelection(CandidateMode.TOKEN_IDS, token_ids=tuple(range(0, 300, 2)))
    few = CandidateSelection(CandidateMode.TOKEN_IDS, token_ids=(5, 3))
    selections = [TOP_5, many, NO_CANDIDATES, few, EVERY, TOP_5]
    token_ids = [7, 0, 299, 3, 4, 5]
    together = score_tokens(logits, token_ids, selections)
    for row, score in enumerate(together):
        alone = score_tokens(logits[row : row + 1], [token_ids[row]], [selections[row]])
        assert alone == [score]
    order = ranked(torch.log_softmax(logits[1], 0))
    assert together[1].candidates.ranks == tuple(order.index(one) + 1 for one in many.token_ids)


def test_always_finite():
    """A spread beyond float32, or a masked token, has a log probability that is a number."""
    logits = torch.tensor([[3e38, -3e38, 0.0, -torch.inf]])
    (score,) = score_tokens(logits, [3], [EVERY])
    assert all(math.isfinite(value) for value in (score.logprob, *score.candidates.logprobs))
    assert score.candidates.token_ids[0] == 0
