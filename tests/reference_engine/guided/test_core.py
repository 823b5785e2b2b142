"""Guided outputs in the engine core: masks, ends, batches, preemption, faults."""

import json
import re
from dataclasses import replace

import pytest

from reference_engine.engine.output import FinishReason, RequestFailed, StopMatch
from reference_engine.engine.request import Sampling
from reference_engine.guided.guide import Guide, GuideKind
from reference_engine.guided.guides import Guides
from reference_engine.guided.matcher import Matcher
from tests.reference_engine.engine.fakes import (
    EOS,
    ByteTokenizer,
    ScriptModel,
    build,
    collect,
    random_model,
    request,
    run,
)

GUIDES = Guides(ByteTokenizer())
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]{1,5}$"},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


def regex(pattern):
    return GUIDES.compile(Guide(GuideKind.REGEX, pattern))


def guided(grammar, *, prompt=b"ab", hot=True, **asked):
    asked = {"max_tokens": 60, **asked}
    temperature = 2.0 if hot else 0.0
    return replace(request(prompt, temperature=temperature, **asked), grammar=grammar)


def alone(one, **sizes):
    built = build(random_model(), **sizes)
    (result,) = run(built.core, one)
    assert built.pool.num_free == built.pool.num_blocks
    return result


def outputs(result, count):
    return [result.text(index) for index in range(count)]


@pytest.mark.parametrize("hot", [False, True])
def test_complete_outputs_conform(hot):
    """A random model gives exactly what the regex asks for, and its end is the EOS token."""
    result = alone(guided(regex("[a-f]{4}-[0-9]{2}"), hot=hot))
    assert re.fullmatch("[a-f]{4}-[0-9]{2}", result.text())
    assert result.finish().reason is FinishReason.STOP
    assert result.finish().stop == StopMatch(eos_token_id=EOS)
    assert result.finish().usage.completion_tokens == 8
    assert bytes(result.ids()).decode() == result.text()


def test_json_of_a_random_model():
    """JSON that a random model writes under a schema validates."""
    grammar = GUIDES.compile(Guide(GuideKind.JSON_SCHEMA, json.dumps(PERSON)))
    # Few blanks come by chance: 128 of them fit.
    result = alone(guided(grammar, max_tokens=200, hot=False))
    assert result.finish().reason is FinishReason.STOP
    person = json.loads(result.text())
    assert re.fullmatch("[A-Z][a-z]{1,5}", person["name"])
    assert 0 <= person["age"] <= 120


def test_the_limit_cuts():
    """At max_tokens the output is a beginning of the language, and the reason is LENGTH."""
    result = alone(guided(regex("[a-f]{20}"), max_tokens=5))
    assert re.fullmatch("[a-f]{5}", result.text())
    assert result.finish().reason is FinishReason.LENGTH
    assert result.finish().stop is None


def test_the_empty_output():
    """A language of only the empty text ends at once."""
    result = alone(guided(regex("")))
    assert (result.text(), result.ids()) == ("", [])
    assert result.finish().stop == StopMatch(eos_token_id=EOS)


def test_every_output_has_its_own_place():
    """Outputs of one request follow the guide each by itself."""
    result = alone(guided(regex("(a|bb|ccc){3}"), num_sequences=6))
    texts = outputs(result, 6)
    assert all(re.fullmatch("(a|bb|ccc){3}", text) for text in texts)
    assert len(set(texts)) > 1


def mixed():
    """Guided and unguided requests, greedy and sampled, with and without penalties."""
    first = guided(regex("[a-m]{3,30}"), seed=3)
    return [
        first,
        request(b"free", max_tokens=20, temperature=1.0, seed=4),
        guided(regex("(x[0-9])+y"), prompt=b"other", seed=5, num_sequences=3),
        request(b"greedy", max_tokens=20),
        replace(first, sampling=Sampling(seed=8, repetition_penalty=1.3, frequency_penalty=0.5)),
        guided(regex("[ab]{12}"), hot=False),
    ]


def test_alone_and_in_a_batch():
    """Guided and unguided rows share steps, and each output is what it is alone."""
    requests = mixed()
    together = run(build(random_model()).core, *requests)
    for one, result in zip(requests, together, strict=True):
        single = alone(one)
        count = one.num_sequences
        assert outputs(result, count) == outputs(single, count)
        assert [result.ids(index) for index in range(count)] == [
            single.ids(index) for index in range(count)
        ]


def test_preemption_keeps_the_place():
    """Too few blocks for all: preempted outputs go on in their language, with the same tokens."""
    requests = [guided(regex("[a-f]{30}"), prompt=bytes([65 + n] * 6), seed=n) for n in range(4)]
    built = build(random_model(), num_blocks=16)
    together = run(built.core, *requests)
    assert built.scheduler.preemptions
    for one, result in zip(requests, together, strict=True):
        assert re.fullmatch("[a-f]{30}", result.text())
        assert result.text() == alone(one).text()


def test_a_guide_overrides_the_models_will():
    """A model that is sure of something else still follows the guide, and its EOS waits."""
    built = build(ScriptModel(b"zz", 2))
    (result,) = run(built.core, guided(regex("[ab]{3}"), hot=False))
    assert re.fullmatch("[ab]{3}", result.text())


def test_stop_texts_cut():
    """The caller's stop text ends a guided output before its language does."""
    built = build(ScriptModel(b"aabaaa", 2))
    (result,) = run(built.core, guided(regex("[ab]{6}"), hot=False, stop_texts=("ba",)))
    assert result.text() == "aa"
    assert result.finish().stop == StopMatch(text="ba")


def test_stop_tokens_cut():
    """The caller's stop token ends a guided output; one that the guide forbids never comes."""
    built = build(ScriptModel(b"aabaaa", 2))
    asked = guided(regex("[ab]{6}"), hot=False, stop_token_ids=frozenset((98, 99)))
    (result,) = run(built.core, asked)
    assert result.text() == "aa"
    assert result.finish().stop == StopMatch(token_id=98)


def test_min_tokens_keeps_a_guide_open():
    """Where the language can go on, it does so until min_tokens."""
    result = alone(guided(regex("a+"), min_tokens=9, max_tokens=40))
    assert re.fullmatch("a{9,}", result.text())


def test_min_tokens_after_the_end():
    """Where the language is over, EOS comes again as a token without text, and then ends."""
    result = alone(guided(regex("abc"), min_tokens=6))
    assert result.text() == "abc"
    assert result.ids() == [*b"abc", EOS, EOS, EOS]
    assert result.finish().reason is FinishReason.STOP
    assert result.finish().stop == StopMatch(eos_token_id=EOS)
    assert result.finish().usage.completion_tokens == 7


def test_min_tokens_and_a_stop_token_that_is_all_there_is():
    """A stop token that the guide forces before min_tokens is an ordinary token there."""
    result = alone(guided(regex("abc"), min_tokens=2, stop_token_ids=frozenset(b"ac")))
    assert result.text() == "ab"
    assert result.finish().stop == StopMatch(token_id=99)


def test_ignore_eos_keeps_a_guide_open():
    """With ignore_eos a language that can go on does; one that is over ends nevertheless."""
    assert len(alone(guided(regex("a+"), ignore_eos=True, max_tokens=30)).text()) == 30
    over = alone(guided(regex("abc"), ignore_eos=True))
    assert over.text() == "abc"
    assert over.finish().stop == StopMatch(eos_token_id=EOS)


def test_a_dead_end_is_an_error():
    """A grammar that leads nowhere ends the request with an error of the request, not of others."""
    grammar = GUIDES.compile(Guide(GuideKind.EBNF_GRAMMAR, 'root ::= "a" x\nx ::= x "b"'))
    built = build(random_model())
    free = request(b"free", max_tokens=20)
    dead, other = run(built.core, guided(grammar, num_sequences=3), free)
    (failure,) = [event for event in dead.events if isinstance(event, RequestFailed)]
    assert failure is dead.events[-1]
    assert failure.invalid
    assert failure.message.startswith("guided")
    assert other.text() == alone(free).text()
    assert built.pool.num_free == built.pool.num_blocks
    assert built.core.load.running_requests == 0


def test_a_slow_mask_is_an_error(monkeypatch):
    """A mask that takes too long ends its request, so that it can hold up the others only once."""
    monkeypatch.setattr("reference_engine.guided.matcher.MAX_MASK_SECONDS", -1.0)
    (result,) = run(build(random_model()).core, guided(regex("a+")))
    (failure,) = result.events
    assert isinstance(failure, RequestFailed)


def test_abort():
    """An aborted guided request ends like any other."""
    built = build(random_model())
    opened = built.core.add(guided(regex("[a-f]{50}"), num_sequences=2))
    events = built.core.step() + built.core.step() + built.core.abort(opened)
    assert not built.core.busy
    assert collect(opened, events).finish(1).reason is FinishReason.CANCELLED


def test_matchers_take_no_foreign_token():
    """A token that the mask forbids is not taken."""
    matcher = GUIDES.matcher(regex("abc"))
    assert isinstance(matcher, Matcher)
    assert matcher.advance(97)
    assert not matcher.advance(EOS)
    assert not matcher.complete
    assert not matcher.advance(122)
    assert matcher.failed
