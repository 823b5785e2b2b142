"""Laws about logprobs, ranks and candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from conformance.wire.transcript import Transcript
from oe_wire import v1
from tests.conformance.laws.build import (
    DECLARED,
    finished,
    found,
    info,
    prompt,
    request,
    rule,
    stream,
    tokens,
)

ON = v1.ResponseOptions(return_output_logprobs=True)


def selected(**selection: object) -> v1.ResponseOptions:
    """Options that ask for output candidates."""
    chosen = v1.CandidateTokenSelection()
    match selection:
        case {"top_n": int(limit)}:
            chosen.top_n = limit
        case {"ids": list(ids)}:
            chosen.token_ids.ids.extend(ids)
        case {"all": True}:
            chosen.all.SetInParent()
    return v1.ResponseOptions(return_output_logprobs=True, output_candidates=chosen)


def call(*records: v1.TokenInfo, response: v1.ResponseOptions | None = ON) -> Transcript:
    """One output, one record per message."""
    return stream(request(response=response), *(tokens(0, [r]) for r in records), finished(0))


def ranked(*ranks: int) -> v1.TokenInfo:
    """A record whose candidates have these ranks; candidate ids count from 20."""
    return info(1, -1.0, candidates=[(20 + at, rank) for at, rank in enumerate(ranks)])


def test_asked_logprobs_are_there() -> None:
    """A missing logprob is found, 0 and the slack above it are not."""
    assert rule("STREAM-020", call(info(1, -0.5), info(2, 0.0), info(3, 5e-7))) is True
    assert found("STREAM-020", call(info(1, -0.5), info(2))) == 1
    assert rule("STREAM-020", call(info(1), response=None)) is None
    assert rule("STREAM-020", call()) is None


@pytest.mark.parametrize("value", [0.1, float("nan"), float("inf"), float("-inf")])
def test_impossible_logprobs_are_found(value: float) -> None:
    """Above 0 and not finite."""
    assert found("STREAM-020", call(info(1, -1.0), info(2, value))) == 1


def test_unasked_logprobs_are_found() -> None:
    """Each of logprob, rank and candidates."""
    assert rule("STREAM-021", call(info(1), response=None)) is True
    for record in (info(2, -1.0), info(2, rank=1), info(2, candidates=[(1, 1)])):
        assert found("STREAM-021", call(info(1), record, response=None)) == 1
    assert rule("STREAM-021", call(info(1, -1.0))) is None


def test_top_n_bounds_and_sorts() -> None:
    """Too many candidates and a wrong order are found; fewer, and missing ranks, are not."""
    two = selected(top_n=2)
    assert rule("STREAM-022", call(ranked(1, 2), ranked(1), ranked(), response=two)) is True
    assert found("STREAM-022", call(ranked(1, 2), ranked(1, 2, 3), response=two)) == 1
    assert found("STREAM-022", call(ranked(2, 1), response=two)) == 0
    unranked = info(1, -1.0, candidates=[(1, None), (2, None)])
    assert rule("STREAM-022", call(unranked, response=two)) is True
    assert found("STREAM-022", call(ranked(1), response=selected(top_n=0))) == 0


def test_requested_ids_are_the_candidates() -> None:
    """A missing and an additional id are found, in any order."""
    ids = selected(ids=[4, 3])
    right = info(1, -1.0, candidates=[(3, 9), (4, 2)])
    assert rule("STREAM-022", call(right, response=ids)) is True
    for candidates in ([(3, 1)], [(3, 1), (4, 2), (1, 3)], [(3, 1), (5, 2)]):
        wrong = info(1, -1.0, candidates=candidates)
        assert found("STREAM-022", call(right, wrong, response=ids)) == 1


def test_all_is_the_vocabulary() -> None:
    """A produced or known id that is missing, and a changing size, are found."""
    every = [(token, token + 1) for token in range(6)]
    whole = info(1, -1.0, candidates=every)
    asked = selected(all=True)
    assert rule("STREAM-022", call(whole, whole, response=asked)) is True
    cut = info(1, -1.0, candidates=every[:5])
    assert found("STREAM-022", call(whole, cut, response=asked)) == 1
    strange = info(7, -1.0, candidates=every)
    assert found("STREAM-022", call(strange, response=asked)) == 0
    warm = replace(DECLARED, known_tokens=(6,))
    assert found("STREAM-022", call(whole, response=asked), warm) == 0


def test_no_selection_is_not_judged() -> None:
    """Nothing selected, nothing asked for, and an empty selection."""
    assert rule("STREAM-022", call(ranked(1))) is None
    ignored = selected(top_n=1)
    ignored.ClearField("return_output_logprobs")
    assert rule("STREAM-022", call(ranked(1, 2), response=ignored)) is None
    assert rule("STREAM-022", call(ranked(1), response=selected())) is None
    assert rule("STREAM-022", call(response=selected(top_n=1))) is None


@pytest.mark.parametrize(("start", "event"), [(None, None), (1, 0)])
def test_prompt_candidates_start_after_the_first_token(
    start: int | None, event: int | None
) -> None:
    """The bare first prompt token is left out, a bare first record further in is found."""
    options = v1.ResponseOptions(return_prompt_logprobs=True, prompt_logprob_start=start)
    options.prompt_candidates.token_ids.ids.append(3)
    answer = prompt(info(5), info(6, -1.0, candidates=[(3, 1)]))
    judged = stream(request([5, 6], response=options), answer, finished(0))
    if event is None:
        assert rule("STREAM-022", judged) is True
    else:
        assert found("STREAM-022", judged) == event


def positions(records: Sequence[v1.TokenInfo]) -> tuple[Transcript, Transcript]:
    """The same records as output and as prompt."""
    asked = request(response=ON)
    return stream(asked, tokens(0, records)), stream(asked, prompt(*records))


def test_ranks_count_from_one_without_repeats() -> None:
    """Rank 0 and a rank of two tokens are found, on output and prompt records."""
    for judged in positions([info(1, -1.0, 1), ranked(1, 2)]):
        assert rule("STREAM-023", judged) is True
    for record in (info(1, -1.0, 0), ranked(0, 1), ranked(1, 1)):
        for judged in positions([info(1, -1.0, 1), record]):
            assert found("STREAM-023", judged) == 0
    for judged in positions([info(1, -1.0)]):
        assert rule("STREAM-023", judged) is None


def test_the_sampled_token_may_tie_with_a_candidate() -> None:
    """Only ranks of candidates are compared with each other."""
    tied = info(1, -1.0, 2, [(1, 1), (2, 2)])
    assert rule("STREAM-023", call(tied)) is True
