"""Whole requests through the engine core: stops, limits, scores, abort, faults."""

import math
from dataclasses import replace

import pytest

from reference_engine.engine.output import (
    FinishReason,
    OutputFinished,
    PromptScored,
    RequestFailed,
    StopMatch,
    TokensProduced,
)
from reference_engine.engine.request import CacheUse, CandidateMode, CandidateSelection, Scoring
from tests.reference_engine.engine.fakes import (
    EOS,
    ScriptModel,
    build,
    collect,
    random_model,
    request,
    run,
)

PROMPT = b"ab"


def scripted(script, **asked):
    asked = {"max_tokens": 40, **asked}
    built = build(ScriptModel(script, len(PROMPT)))
    (result,) = run(built.core, request(PROMPT, **asked))
    assert built.pool.num_free == built.pool.num_blocks
    return result


def test_length():
    """The caller's limit ends an output with LENGTH and no stop match."""
    result = scripted(b"hello world", max_tokens=5)
    assert result.text() == "hello"
    assert result.ids() == list(b"hello")
    assert result.finish().reason is FinishReason.LENGTH
    assert result.finish().stop is None
    assert result.finish().usage.completion_tokens == 5


def test_eos_is_withheld():
    """EOS ends an output with STOP; it counts, but neither its record nor text goes out."""
    result = scripted(b"hi")
    assert (result.text(), result.ids()) == ("hi", list(b"hi"))
    assert result.finish().stop == StopMatch(eos_token_id=EOS)
    assert result.finish().usage.completion_tokens == 3


def test_ignore_eos_masks_it():
    """With ignore_eos the output goes on to its limit and EOS is never drawn."""
    result = scripted(b"hi", max_tokens=6, ignore_eos=True)
    assert len(result.ids()) == 6
    assert EOS not in result.ids()
    assert result.finish().reason is FinishReason.LENGTH


def test_window_ends_with_length():
    """Without a limit of the caller the window of prompt and output ends the output."""
    built = build(ScriptModel(b"x" * 500, len(PROMPT)), num_blocks=5, block_size=4)
    (result,) = run(built.core, request(PROMPT, max_tokens=None))
    assert len(result.ids()) == 18
    assert result.finish().reason is FinishReason.LENGTH


def test_prompt_that_fills_the_window():
    """A prompt as long as the window gets no token, and LENGTH."""
    built = build(ScriptModel(b"x", 20), num_blocks=5, block_size=4)
    (result,) = run(built.core, request(b"y" * 20, max_tokens=3))
    assert result.ids() == []
    assert result.finish().reason is FinishReason.LENGTH
    assert result.finish().usage.completion_tokens == 0


@pytest.mark.parametrize("include", [False, True])
def test_stop_token(include):
    """A stop token ends the output; its record goes out only when asked for."""
    result = scripted(b"abc.def", stop_token_ids=frozenset(b"."), include_stop=include)
    assert result.finish().stop == StopMatch(token_id=ord("."))
    assert result.text() == ("abc." if include else "abc")
    assert result.ids() == list(b"abc." if include else b"abc")
    assert result.finish().usage.completion_tokens == 4


@pytest.mark.parametrize("include", [False, True])
def test_stop_text(include):
    """A stop text over several tokens is cut; at most its last record is withheld."""
    result = scripted(b"one END two", stop_texts=("END",), include_stop=include)
    assert result.finish().stop == StopMatch(text="END")
    assert result.text() == ("one END" if include else "one ")
    assert result.ids() == list(b"one END" if include else b"one EN")
    assert result.finish().usage.completion_tokens == 7


def test_held_text_is_flushed_at_the_end():
    """Text that looked like a stop goes out when the output ends otherwise."""
    result = scripted(b"one EN", stop_texts=("END",))
    assert result.text() == "one EN"
    assert result.finish().stop == StopMatch(eos_token_id=EOS)


def test_min_tokens():
    """Neither EOS nor stop token nor stop text ends an output before min_tokens."""
    plain = scripted(b"a.b.c.", min_tokens=3, stop_token_ids=frozenset(b"."))
    assert plain.finish().stop == StopMatch(token_id=ord("."))
    assert len(plain.ids()) >= 3
    text = scripted(b"a.b.c.", min_tokens=3, stop_texts=(".",))
    assert text.text() == "a.b"
    early = scripted(b"", min_tokens=4)
    assert len(early.ids()) == 4
    assert early.finish().stop == StopMatch(eos_token_id=EOS)


def test_code_points_are_whole():
    """Each piece of text is whole code points and agrees with the records beside it."""
    result = scripted("aé漢🙂z".encode())
    pieces = [event for event in result.events if isinstance(event, TokensProduced)]
    assert [piece.text for piece in pieces] == ["a", "é", "漢", "🙂", "z"]
    for piece in pieces:
        assert bytes(token.token_id for token in piece.tokens).decode() == piece.text


def test_cut_code_point_is_replaced():
    """An output that ends inside a code point says so with U+FFFD and keeps its records."""
    result = scripted("é".encode()[:1])
    assert result.text() == "\ufffd"
    assert result.ids() == [0xC3]


def test_events_are_in_order():
    """Prompt scores come first, one end per output, usage on the last one only."""
    built = build(random_model(), num_blocks=128, max_batched_tokens=512)
    scoring = Scoring(output=True, prompt_start=0)
    # Longer than the piece of a scored prompt in one step, which is 64 tokens.
    (result,) = run(
        built.core, request(b"x" * 100, num_sequences=3, temperature=1.0, scoring=scoring)
    )
    assert isinstance(result.events[0], PromptScored)
    ends = [event for event in result.events if isinstance(event, OutputFinished)]
    assert sorted(end.output_index for end in ends) == [0, 1, 2]
    assert [end.usage is not None for end in ends] == [False, False, True]
    assert result.events[-1] is ends[-1]
    assert ends[-1].usage.completion_tokens >= sum(len(result.tokens(index)) for index in range(3))


def test_prompt_scores_match_one_pass():
    """Prompt scores over chunks equal log_softmax of one pass, aligned by one position."""
    model = random_model()
    prompt = bytes(range(40, 140))
    built = build(model, max_batched_tokens=16)
    scoring = Scoring(prompt_start=3, prompt_candidates=CandidateSelection(CandidateMode.TOP_N, 2))
    (result,) = run(built.core, request(prompt, scoring=scoring))
    (whole,) = run(
        build(model, max_batched_tokens=256).core,
        request(prompt, scoring=Scoring(prompt_start=0)),
    )
    assert len(whole.prompt()) == len(prompt)
    assert whole.prompt()[0].score is None
    assert [token.token_id for token in result.prompt()] == list(prompt[3:])
    for ours, theirs in zip(result.prompt(), whole.prompt()[3:], strict=True):
        assert math.isclose(ours.score.logprob, theirs.score.logprob, abs_tol=1e-4)
        assert ours.score.rank == theirs.score.rank
        assert ours.score.candidates.ranks == (1, 2)


def test_abort_flushes_and_frees():
    """Abort keeps what was produced, ends each output as CANCELLED, and frees every block."""
    built = build(ScriptModel(b"one EN more", len(PROMPT)))
    opened = built.core.add(request(PROMPT, max_tokens=40, stop_texts=("END",), num_sequences=2))
    emitted = [event for _ in range(6) for event in built.core.step()]
    emitted += built.core.abort(opened)
    result = collect(opened, emitted)
    assert [result.text(index) for index in (0, 1)] == ["one EN", "one EN"]
    assert {result.finish(index).reason for index in (0, 1)} == {FinishReason.CANCELLED}
    assert result.events[-1].usage.completion_tokens == 12
    assert built.pool.num_free == built.pool.num_blocks
    assert not built.core.busy
    assert built.core.abort(opened) == []


def test_abort_while_prompt_is_scored():
    """Outputs that wait for the prompt's scores are aborted too."""
    built = build(random_model(), max_batched_tokens=16)
    opened = built.core.add(request(b"x" * 100, num_sequences=3, scoring=Scoring(prompt_start=0)))
    emitted = built.core.step() + built.core.abort(opened)
    ends = [event for event in collect(opened, emitted).events if isinstance(event, OutputFinished)]
    assert sorted(end.output_index for end in ends) == [0, 1, 2]
    assert built.pool.num_free == built.pool.num_blocks
    assert not built.core.busy


def test_fail_all():
    """A fault ends each request once, with usage if it had tokens, and the core goes on."""
    built = build(ScriptModel(b"hello", len(PROMPT)))
    built.core.add(request(PROMPT))
    built.core.step()
    built.core.add(request(PROMPT))
    failures = [event for _, event in built.core.fail_all("broken")]
    assert all(isinstance(event, RequestFailed) for event in failures)
    assert [event.usage is not None for event in failures] == [True, False]
    assert built.pool.num_free == built.pool.num_blocks
    (result,) = run(built.core, request(PROMPT))
    assert result.text() == "hello"


REFERENCE = [
    request(bytes([65 + number]) * (3 + number), seed=number, temperature=1.0, max_tokens=20)
    for number in range(8)
]


def alone(model):
    return [run(build(model).core, one)[0].ids() for one in REFERENCE]


def test_seeded_output_in_a_batch():
    """A seeded request gives the same tokens alone and among others."""
    model = random_model()
    together = run(build(model).core, *REFERENCE)
    assert [result.ids() for result in together] == alone(model)


def test_seeded_output_after_preemption():
    """Running out of blocks, with requests computed again, changes no token."""
    model = random_model()
    built = build(model, num_blocks=16, block_size=4, max_batched_tokens=24)
    together = run(built.core, *REFERENCE)
    assert built.scheduler.preemptions > 0
    assert [result.ids() for result in together] == alone(model)
    assert built.pool.num_free == built.pool.num_blocks


def test_outputs_differ_by_index_only():
    """Outputs of one seeded request differ; output 0 equals the request with one output."""
    model = random_model()
    (several,) = run(build(model).core, request(b"abc", temperature=1.0, num_sequences=3))
    (single,) = run(build(model).core, request(b"abc", temperature=1.0))
    assert several.ids(0) == single.ids(0)
    assert len({tuple(several.ids(index)) for index in range(3)}) == 3


def test_output_scores():
    """Each drawn token carries a finite log probability of the raw logits and its rank."""
    (result,) = run(
        build(random_model()).core,
        request(b"abc", scoring=Scoring(output=True)),
    )
    assert result.tokens()
    for token in result.tokens():
        assert math.isfinite(token.score.logprob)
        assert token.score.logprob <= 0
        assert token.score.rank == 1


def test_script_model_is_batch_independent():
    """The fake used above does what its description says."""
    batch_rows = build(ScriptModel(b"xyz", 2))
    results = run(batch_rows.core, request(PROMPT), request(PROMPT, max_tokens=2))
    assert [result.text() for result in results] == ["xyz", "xy"]


@pytest.mark.parametrize("bypass", [False, True])
def test_outputs_after_preemption(bypass):
    """Several outputs of several requests, sharing blocks and short of them, draw what each
    request draws alone.
    """
    model = random_model()
    cache = CacheUse(bypass=bypass)
    requests = [
        replace(
            request(
                b"shared beginning"[: 9 + number],
                seed=number,
                temperature=1.0,
                max_tokens=18,
                num_sequences=1 + number % 3,
            ),
            cache=cache,
        )
        for number in range(6)
    ]
    built = build(model, num_blocks=18, block_size=4, max_batched_tokens=24)
    together = run(built.core, *requests)
    assert built.scheduler.preemptions > 0
    for one, result in zip(requests, together, strict=True):
        (single,) = run(build(model).core, one)
        for index in range(one.num_sequences):
            assert result.ids(index) == single.ids(index)
    assert built.pool.num_free == built.pool.num_blocks


def test_an_output_does_not_depend_on_how_many_there_are():
    """Output i of a request is the same with 3 and with 6 outputs."""
    model = random_model()
    few, many = (
        run(build(model).core, request(b"abc", temperature=1.0, num_sequences=count))[0]
        for count in (3, 6)
    )
    assert [few.ids(index) for index in range(3)] == [many.ids(index) for index in range(3)]


def test_scored_prompts_do_not_hold_up_others():
    """While a long prompt is scored chunk by chunk, another request gets a token each step."""
    built = build(random_model(), num_blocks=128, max_batched_tokens=256)
    short = built.core.add(request(b"ab", max_tokens=40, ignore_eos=True))
    built.core.step()
    built.core.add(request(b"x" * 250, max_tokens=1, scoring=Scoring(prompt_start=0)))
    for _ in range(4):
        before = short.completion_tokens
        events = [event for _, event in built.core.step()]
        assert short.completion_tokens == before + 1
    assert any(isinstance(event, PromptScored) for event in events)
