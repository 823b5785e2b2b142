"""Each law finds the stream that breaks its rule, and only its stated relatives find it too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import grpc
import pytest

from conformance.laws import Finding, judge, laws_of
from conformance.laws.law import GENERATE
from conformance.wire.transcript import ActionKind, Transcript
from oe_wire import v1
from tests.conformance.laws.build import (
    CANCELLED,
    LENGTH,
    STOP,
    aggregated,
    ending,
    failed,
    finished,
    info,
    prompt,
    rejected,
    request,
    stream,
    tokens,
    usage,
)

Answers = list[v1.GenerateResponse]
PROMPT = "tell me about sunflowers"


def _options() -> v1.ResponseOptions:
    built = v1.ResponseOptions(return_prompt_logprobs=True, return_output_logprobs=True)
    built.prompt_candidates.token_ids.ids.append(3)
    built.output_candidates.top_n = 2
    return built


def _told(token: int) -> v1.TokenInfo:
    return info(token, -1.0, 2, [(3, 1), (token, 2)])


def rich() -> Transcript:
    """Two outputs with everything on them: one ends on a stop token, one at the limit."""
    asked = request([5, 6], n=2, stop=[9], response=_options(), max_tokens=5, min_tokens=3)
    first = [tokens(0, [_told(10 + at)], "abcd"[at]) for at in range(4)]
    second = [tokens(1, [_told(20 + at)], "vwxyz"[at]) for at in range(5)]
    opening = prompt(info(5), info(6, -1.0, 4, [(3, 1)]))
    ends = [finished(0, STOP, token=9), finished(1, LENGTH)]
    counted = usage(2, 10, cached_prompt_tokens=1, reasoning_tokens=4)
    return stream(asked, opening, *first, *second, *ends, usage=counted)


def plain() -> Transcript:
    """One output of bare tokens that ends at its limit; EOS is ignored."""
    asked = request([5, 6], max_tokens=4, ignore_eos=True)
    events = [tokens(0, [10 + at], "abcd"[at]) for at in range(4)]
    return stream(asked, *events, finished(0, LENGTH), usage=usage(2, 4))


def broken() -> Transcript:
    """One output that fails for a reason of the request after two tokens."""
    events = [tokens(0, [1], "a"), tokens(0, [2], "b")]
    hopeless = failed(v1.ERROR_CODE_UNSUPPORTED_FEATURE, "no such guide")
    return stream(request(prompt=PROMPT), *events, hopeless, usage=usage(4, 2))


def aborted() -> Transcript:
    """One output that an Abort ends after two tokens."""
    events = [tokens(0, [1], "a"), tokens(0, [2], "b"), finished(0, CANCELLED)]
    counted = usage(3, 2)
    return stream(request(), *events, usage=counted, actions=[ActionKind.ABORT])


def guided() -> Transcript:
    """One output that a guide of two wide texts ended, with nothing from the cache."""
    asked = request([5, 6], max_tokens=8)
    asked.guided.choice.choices.extend(["語é", "語e"])
    asked.kv.bypass_prefix_cache = True
    events = [tokens(0, [10, 11], "語"), tokens(0, [12], "é"), finished(0, STOP, eos=2)]
    return stream(asked, *events, usage=usage(2, 3, cached_prompt_tokens=0))


def refused() -> Transcript:
    """A request that is rejected as it should be."""
    return rejected(sent=request(prompt=PROMPT), code="INVALID_ARGUMENT")


@dataclass(frozen=True, slots=True)
class Mutation:
    """A right call, one change to it, and the laws that must find it (short ids).

    The first of `laws` is the one meant, the others are its relatives.
    """

    base: Callable[[], Transcript]
    change: Callable[[Answers], object]
    laws: tuple[str, ...]


def mutation(
    base: Callable[[], Transcript], change: Callable[[Answers], object], *laws: str
) -> Mutation:
    """A Mutation, its laws written one after the other."""
    return Mutation(base, change, laws)


def _set(at: int, path: str, value: object) -> Callable[[Answers], object]:
    """Set a field of answer `at`; `path` may step through messages and, by number, lists."""
    *steps, name = path.split(".")

    def change(answers: Answers) -> None:
        target: object = answers[at]
        for step in steps:
            if step.isdigit() and isinstance(target, Sequence):
                target = target[int(step)]
            else:
                target = getattr(target, step)
        setattr(target, name, value)

    return change


def _drop_field(at: int, *path: str) -> Callable[[Answers], object]:
    def change(answers: Answers) -> None:
        target = answers[at]
        for step in path[:-1]:
            target = getattr(target, step)
        target.ClearField(path[-1])

    return change


def _move(start: int, to: int) -> Callable[[Answers], object]:
    return lambda answers: answers.insert(to, answers.pop(start))


def _cumulate_text(answers: Answers) -> None:
    """What a server does that sends the whole text with every message."""
    text: dict[int, str] = {}
    for answer in answers:
        if answer.HasField("token"):
            index = answer.token.output_index
            text[index] = text.get(index, "") + answer.token.text
            answer.token.text = text[index]


def _cumulate_tokens(answers: Answers) -> None:
    """The same for token records."""
    seen: dict[int, list[v1.TokenInfo]] = {}
    for answer in answers:
        if answer.HasField("token"):
            records = seen.setdefault(answer.token.output_index, [])
            records.extend(answer.token.tokens)
            del answer.token.tokens[:]
            answer.token.tokens.extend(records)


def _append(answer: v1.GenerateResponse) -> Callable[[Answers], object]:
    return lambda answers: answers.append(answer)


def _early_usage(answers: Answers) -> None:
    answers[1].usage.CopyFrom(answers[-1].usage)


def _again(at: int, to: int) -> Callable[[Answers], object]:
    def change(answers: Answers) -> None:
        copy = v1.GenerateResponse()
        copy.CopyFrom(answers[at])
        copy.ClearField("usage")
        answers.insert(to, copy)

    return change


def _stop_early(answers: Answers) -> None:
    """End output 0 of `rich` after one token instead of four."""
    del answers[2:5]
    answers[-1].usage.CopyFrom(usage(2, 7))


def _stop_on_eos(answers: Answers) -> None:
    """End `plain` on EOS instead of its fourth token."""
    del answers[3]
    answers[3].finished.reason = STOP
    answers[3].finished.stop_match.eos_token_id = 2


def _one_more(answers: Answers) -> None:
    """A fifth token where four were allowed, properly counted."""
    answers.insert(4, tokens(0, [19], "e"))
    answers[4].request_id = "r1"
    answers[-1].usage.CopyFrom(usage(2, 5))


def _empty() -> v1.GenerateResponse:
    answer = tokens(0)
    answer.request_id = "r1"
    return answer


# Positions in `rich`: 0 prompt, 1-4 tokens of output 0, 5-9 of output 1, 10 and 11 finishes.
STREAM_MUTATIONS = [
    mutation(rich, _set(3, "request_id", "r2"), "STREAM-001"),
    mutation(rich, _drop_field(1, "token"), "STREAM-002", "USE-002"),
    mutation(rich, _drop_field(2, "token", "output_index"), "STREAM-003"),
    mutation(rich, _set(4, "token.output_index", 2), "STREAM-003"),
    mutation(rich, _cumulate_text, "STREAM-004"),
    mutation(plain, _cumulate_text, "STREAM-004"),
    mutation(plain, _cumulate_tokens, "STREAM-004", "STREAM-019", "USE-002"),
    mutation(rich, lambda a: a.pop(10), "STREAM-005", "STREAM-013"),
    mutation(rich, _again(10, 11), "STREAM-005", "STREAM-006"),
    mutation(rich, _move(4, 10), "STREAM-006"),
    mutation(rich, _again(0, 0), "STREAM-007"),
    mutation(plain, lambda a: a.insert(0, prompt(5, 6)), "STREAM-007", "STREAM-001"),
    mutation(rich, _move(0, 1), "STREAM-008"),
    mutation(rich, _set(0, "prompt.tokens.0.logprob", -1.0), "STREAM-009"),
    mutation(rich, _set(0, "prompt.tokens.1.token_id", 8), "STREAM-010"),
    mutation(rich, lambda a: a[0].prompt.tokens.pop(), "STREAM-010"),
    mutation(broken, _again(1, 3), "STREAM-011", "STREAM-012", "USE-001"),
    mutation(rich, _again(1, 12), "STREAM-012", "STREAM-006", "USE-001"),
    mutation(plain, lambda a: a.pop(), "STREAM-013", "STREAM-005", "USE-001"),
    mutation(rich, _drop_field(10, "finished", "stop_match"), "STREAM-014"),
    mutation(rich, _set(11, "finished.stop_match.eos_token_id", 2), "STREAM-014"),
    mutation(rich, _set(10, "finished.stop_match.stop_token_id", 8), "STREAM-015"),
    mutation(rich, _set(10, "finished.stop_match.stop_text", "x"), "STREAM-015"),
    mutation(rich, _set(4, "token.tokens.0.token_id", 9), "STREAM-016"),
    mutation(plain, _stop_on_eos, "STREAM-017"),
    mutation(rich, _stop_early, "STREAM-018"),
    mutation(plain, _one_more, "STREAM-019"),
    mutation(plain, _set(4, "finished.reason", 0), "STREAM-019"),
    mutation(rich, _set(6, "token.tokens.0.logprob", 0.5), "STREAM-020"),
    mutation(plain, _set(1, "token.tokens.0.logprob", -0.5), "STREAM-021"),
    mutation(rich, lambda a: a[2].token.tokens[0].candidates.add(rank=3), "STREAM-022"),
    mutation(rich, lambda a: a[0].prompt.tokens[1].candidates.pop(), "STREAM-022"),
    mutation(rich, _set(2, "token.tokens.0.rank", 0), "STREAM-023"),
    mutation(rich, _set(2, "token.tokens.0.candidates.0.rank", 2), "STREAM-023"),
    mutation(plain, lambda a: a.insert(1, _empty()), "STREAM-024"),
    mutation(guided, _set(1, "token.text", "\ufffd"), "STREAM-025", "STREAM-026"),
    mutation(guided, _set(1, "token.text", "è"), "STREAM-026"),
    mutation(guided, _set(1, "token.text", ""), "STREAM-026"),
]


OTHER_MUTATIONS = [
    mutation(rich, _drop_field(-1, "usage"), "USE-001"),
    mutation(rich, _early_usage, "USE-001"),
    mutation(rich, _set(-1, "usage.completion_tokens", 1), "USE-002", "USE-003", "USE-005"),
    mutation(plain, lambda a: a[-1].usage.CopyFrom(usage(2, 5)), "USE-002"),
    mutation(rich, _set(-1, "usage.total_tokens", 11), "USE-003"),
    mutation(rich, lambda a: a[-1].usage.CopyFrom(usage(4, 10)), "USE-004"),
    mutation(rich, _set(-1, "usage.cached_prompt_tokens", 3), "USE-005"),
    mutation(guided, _set(-1, "usage.cached_prompt_tokens", 1), "USE-006"),
    mutation(broken, _drop_field(-1, "usage"), "USE-008"),
    mutation(aborted, lambda a: a[-1].usage.CopyFrom(usage(3, 1)), "USE-009"),
    mutation(aborted, _drop_field(-1, "usage"), "USE-009"),
    mutation(broken, _set(-1, "error.code", 0), "ERR-002"),
    mutation(broken, _set(-1, "error.code", 99), "ENUM-002"),
    mutation(broken, _set(-1, "error.retryable", 1), "ERR-005"),
    mutation(broken, _set(-1, "error.message", f"{PROMPT}?"), "ERR-007"),
]


def _findings(call: Transcript) -> set[str]:
    rulings = judge(call, aggregated())
    return {law for law, ruling in rulings.items() if isinstance(ruling, Finding)}


def _full(laws: Iterable[str]) -> set[str]:
    return {f"OE-CORE-{law}" for law in laws}


@pytest.mark.parametrize("base", [rich, plain, broken, aborted, guided, refused])
def test_the_right_calls_are_right(base: Callable[[], Transcript]) -> None:
    """What is mutated breaks nothing before."""
    assert _findings(base()) == set()


def _mutated(each: Mutation) -> Transcript:
    base = each.base()
    answers: Answers = []
    for message in base.messages:
        assert isinstance(message, v1.GenerateResponse)
        answers.append(message)
    each.change(answers)
    again = stream(base.request, end=base.ending)
    events = stream(None, *answers).events
    return replace(again, events=events, actions=base.actions)


@pytest.mark.parametrize("each", STREAM_MUTATIONS + OTHER_MUTATIONS, ids=lambda m: m.laws[0])
def test_a_mutated_stream_is_found_by_its_laws(each: Mutation) -> None:
    """The law meant and its relatives find it, no other does."""
    assert _findings(_mutated(each)) == _full(each.laws)


INTERNAL = ending(grpc.StatusCode.INTERNAL)
# Changes to the status that ends a call.
STATUSES = [
    (replace(broken(), ending=INTERNAL), ("ERR-001", "STREAM-011", "STREAM-012")),
    (replace(plain(), ending=INTERNAL), ("STREAM-012",)),
    (rejected(sent=request(prompt=PROMPT)), ("ERR-004",)),
    (rejected(code="OVERLOADED"), ("ERR-004",)),
    (rejected(code="INVALID_ARGUMENT", retryable="true"), ("ERR-005",)),
    (rejected(grpc.StatusCode.INTERNAL, code="INTERNAL"), ("ERR-006",)),
    (
        rejected(details=f"bad: {PROMPT}", sent=request(prompt=PROMPT), code="INVALID_ARGUMENT"),
        ("ERR-007",),
    ),
]


@pytest.mark.parametrize(("call", "laws"), STATUSES)
def test_a_wrong_status_is_found_by_its_laws(call: Transcript, laws: tuple[str, ...]) -> None:
    """The same for what comes after, or instead of, the stream."""
    assert _findings(call) == _full(laws)


def test_every_law_has_a_mutation() -> None:
    """No law is without a stream that breaks it."""
    meant = {each.laws[0] for each in STREAM_MUTATIONS + OTHER_MUTATIONS}
    meant |= {laws[0] for _, laws in STATUSES}
    assert _full(meant) == laws_of(GENERATE)
