"""The checks of options, of what refusals leave behind and of repetition, on a fake engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import grpc
import pytest

from conformance.checks import collect
from conformance.checks.check import Check
from conformance.checks.core import (
    error_status,
    generate_candidates,
    generate_deadline,
    generate_extras,
    generate_guides,
    generate_options,
    generate_overload,
    generate_repeat,
    generate_roles,
    generate_trace,
    message_size,
    stream_content,
    usage_cache,
)
from conformance.checks.violation import Tolerated
from conformance.model.registry import load_registry
from conformance.strategies.guides import CHOICES
from conformance.wire.declared import Declared
from oe_wire import v1
from tests.conformance.fake_engine import Behaviour, FakeEngine, Stream
from tests.conformance.fake_rules import capabilities, model_info
from tests.conformance.run_check import Outcome, run_check

MODULES = (
    error_status,
    generate_candidates,
    generate_deadline,
    generate_extras,
    generate_guides,
    generate_options,
    generate_overload,
    generate_repeat,
    generate_roles,
    generate_trace,
    message_size,
    stream_content,
    usage_cache,
)
CHECKS = collect(load_registry().by_id, MODULES)
REFUSING = ("022", "023", "025", "026", "027", "028", "030", "032")
# Rows that the fake engine can be judged by as it is.
PLAIN = (*(f"GEN-{row}" for row in REFUSING), "GEN-029", "GEN-031", "GEN-034", "GEN-036")


def named(row: str) -> Check:
    return CHECKS[f"OE-CORE-{row}"]


def outcome_of(behaviour: Behaviour, row: str, examples: int = 0) -> Outcome:
    with FakeEngine(behaviour) as engine:
        return run_check(engine, named(row), examples)


@pytest.mark.parametrize("row", [*PLAIN, "GEN-037", "GEN-038", "STREAM-025", "STREAM-027"])
def test_right_engine_passes(row: str) -> None:
    """A right engine passes, on the table and on drawn cases."""
    outcome = outcome_of(Behaviour(), row, examples=5)
    assert outcome.passed, (outcome.violation, outcome.skips)


@pytest.mark.parametrize("row", REFUSING)
def test_accepting_what_is_forbidden_fails_its_own_check_only(row: str) -> None:
    """An engine that lacks one rule fails that row and no other."""
    with FakeEngine(Behaviour(breaks=frozenset({f"GEN-{row}"}))) as engine:
        failed = {other for other in REFUSING if run_check(engine, named(f"GEN-{other}"), 1).failed}
    assert failed == {row}


@pytest.mark.parametrize("row", REFUSING)
def test_wrong_status_fails(row: str) -> None:
    """A refusal with a status that the row does not name is a failure of the row."""
    codes = {f"GEN-{row}": grpc.StatusCode.PERMISSION_DENIED}
    assert outcome_of(Behaviour(codes=codes), f"GEN-{row}").failed


def saying(text: str, reason: int = v1.FINISH_REASON_STOP) -> Callable[..., Stream]:
    """Guided requests are answered with this text, as a complete output."""

    def spoil(request: v1.GenerateRequest, stream: Stream) -> Stream:
        if not request.HasField("guided"):
            yield from stream
            return
        stream.close()  # type: ignore[attr-defined]
        echo = request.request_id
        token = v1.TokenOutput(output_index=0, text=text)
        yield v1.GenerateResponse(request_id=echo, token=token)
        match = v1.StopMatch(eos_token_id=2)
        end = v1.GenerationFinished(output_index=0, reason=reason, stop_match=match)
        yield v1.GenerateResponse(request_id=echo, finished=end, usage=v1.Usage())

    return spoil


def offering(*modes: int) -> v1.ModelInfo:
    model = model_info()
    offer = model.generation.guided_decoding
    offer.supported = bool(modes)
    offer.modes.extend(modes)
    return model


def test_mode_that_works_and_is_not_listed_is_a_warning() -> None:
    """Served as asked without being declared: discovery is wrong, the data plane is not."""
    others = set(v1.GuidedDecodingMode.values()) - {0, v1.GUIDED_DECODING_MODE_CHOICE}
    model = offering(*others)
    serves = Behaviour(model=model, breaks=frozenset({"GEN-023"}), spoil=saying(CHOICES[1]))
    with FakeEngine(serves) as engine:
        case = [
            c for c in named("GEN-023").table(engine.declared) if c.request.guided.choice.choices
        ]  # type: ignore[misc,union-attr]
        only = replace(named("GEN-023"), table=lambda _: case)
        outcome = run_check(engine, only)
    assert isinstance(outcome.violation, Tolerated)
    ignores = Behaviour(model=model, breaks=frozenset({"GEN-023"}))
    assert outcome_of(ignores, "GEN-023").failed


def test_malformed_guide_may_be_told_after_acceptance() -> None:
    """One EngineError INVALID_ARGUMENT is as good as a status; INTERNAL is not."""

    def failing(code: int) -> Behaviour:
        def spoil(request: v1.GenerateRequest, stream: Stream) -> Stream:
            stream.close()  # type: ignore[attr-defined]
            error = v1.EngineError(code=code, message="does not compile")
            yield v1.GenerateResponse(request_id=request.request_id, error=error)

        model = offering(v1.GUIDED_DECODING_MODE_REGEX)
        return Behaviour(model=model, breaks=frozenset({"GEN-023"}), spoil=spoil)

    assert outcome_of(failing(v1.ERROR_CODE_INVALID_ARGUMENT), "GEN-024").passed
    assert outcome_of(failing(v1.ERROR_CODE_INTERNAL), "GEN-024").failed


def test_guided_output_is_held_to_its_guide() -> None:
    """What the guide allows passes, what it does not fails, and a cut output says nothing."""
    model = offering(v1.GUIDED_DECODING_MODE_CHOICE)

    def answering(text: str, reason: int = v1.FINISH_REASON_STOP) -> Outcome:
        spoil = saying(text, reason)
        behaviour = Behaviour(model=model, breaks=frozenset({"GEN-023"}), spoil=spoil)
        return outcome_of(behaviour, "STREAM-026")

    assert answering(CHOICES[0]).passed
    assert answering(CHOICES[0] + ".").failed
    cut = answering("nor", v1.FINISH_REASON_LENGTH)
    assert not cut.passed
    assert not cut.failed


def test_hints_that_change_the_output_fail() -> None:
    """Keys of extra nobody knows must not be refused and must not change a token."""

    def refuse(request: v1.GenerateRequest) -> grpc.StatusCode | None:
        return grpc.StatusCode.INVALID_ARGUMENT if request.extra.fields else None

    def change(request: v1.GenerateRequest, stream: Stream) -> Stream:
        for response in stream:
            if request.extra.fields and response.HasField("token"):
                response.token.text += "!"
            yield response

    assert outcome_of(Behaviour(refuse_also=refuse), "GEN-029").failed
    assert outcome_of(Behaviour(spoil=change), "GEN-029").failed


def moody() -> Callable[..., Stream]:
    """Every answer differs from the one before."""
    count = iter(range(1000))

    def spoil(_: v1.GenerateRequest, stream: Stream) -> Stream:
        mood = next(count)
        for response in stream:
            for token in response.token.tokens:
                token.token_id += mood
            yield response

    return spoil


def test_engine_that_never_repeats_itself() -> None:
    """It fails where repetition is promised, and nowhere else: there nothing can be said."""
    assert outcome_of(Behaviour(spoil=moody()), "GEN-037").failed
    assert outcome_of(Behaviour(spoil=moody()), "GEN-038").failed
    assert outcome_of(Behaviour(spoil=moody()), "GEN-029").passed
    other = outcome_of(Behaviour(spoil=moody()), "STREAM-027")
    assert not other.failed
    assert not other.passed


def test_tokens_in_the_wrong_order_fail() -> None:
    """The first two messages of each output of several are exchanged."""

    def exchange(request: v1.GenerateRequest, stream: Stream) -> Stream:
        count = max(1, request.sampling.num_sequences)
        head = [next(stream) for _ in range(2 * count)] if count > 1 else []
        yield from head[count:]
        yield from head[:count]
        yield from stream

    assert outcome_of(Behaviour(spoil=exchange), "STREAM-027").failed


def test_explicit_default_refused_fails() -> None:
    """An engine that tests the presence of a flag instead of its value."""

    def refuse(request: v1.GenerateRequest) -> grpc.StatusCode | None:
        present = request.kv.HasField("bypass_prefix_cache")
        return grpc.StatusCode.INVALID_ARGUMENT if present else None

    assert outcome_of(Behaviour(refuse_also=refuse), "GEN-031").failed
    everything = Behaviour(refuse_also=lambda _: grpc.StatusCode.INVALID_ARGUMENT)
    assert not outcome_of(everything, "GEN-031").failed


def test_id_of_a_refused_request_must_be_free() -> None:
    """An engine that registers ids before it validates."""
    taken: set[str] = set()

    def note(request: v1.GenerateRequest) -> str:
        taken.add(request.request_id)
        return "bad request"

    def refuse(request: v1.GenerateRequest) -> grpc.StatusCode | None:
        return grpc.StatusCode.ALREADY_EXISTS if request.request_id in taken else None

    assert outcome_of(Behaviour(details=note, refuse_also=refuse), "GEN-034").failed


def test_id_that_stays_taken_after_the_deadline_fails() -> None:
    """The engine did not let go of the request when its time was over."""
    assert outcome_of(Behaviour(keep_ids=True), "GEN-036").failed


class Crowded(FakeEngine):
    """Tells that it runs two requests at a time."""

    @property
    def declared(self) -> Declared:
        declared = super().declared
        if isinstance(declared.engine_info, v1.EngineInfo):
            declared.engine_info.capacity.max_running_requests = 2
        return declared


@pytest.mark.parametrize(
    ("code", "right"),
    [(grpc.StatusCode.RESOURCE_EXHAUSTED, True), (grpc.StatusCode.UNAVAILABLE, False)],
)
def test_overload_has_one_status(code: grpc.StatusCode, right: bool) -> None:
    """What is turned away from a full engine gets RESOURCE_EXHAUSTED."""
    with Crowded(Behaviour()) as engine:
        behaviour = engine.behaviour
        behaviour.refuse_also = lambda _: code if len(engine.active) >= 2 else None
        outcome = run_check(engine, named("GEN-035"))
    assert outcome.passed is right
    assert outcome.failed is not right


def test_engine_that_takes_everything_cannot_be_judged() -> None:
    """Without a refusal nothing is known about refusals."""
    with Crowded(Behaviour()) as engine:
        outcome = run_check(engine, named("GEN-035"))
    assert not outcome.passed
    assert outcome.too_large


def uncached(request: v1.GenerateRequest, stream: Stream) -> Stream:
    """Nothing is cached past the cache; a salt finds what it put there itself."""
    for response in stream:
        if response.HasField("usage") and request.kv.bypass_prefix_cache:
            response.usage.cached_prompt_tokens = 0
        yield response


def salted() -> Callable[..., Stream]:
    seen: set[str] = set()

    def spoil(request: v1.GenerateRequest, stream: Stream) -> Stream:
        known = request.kv.cache_salt in seen
        seen.add(request.kv.cache_salt)
        for response in stream:
            if response.HasField("usage") and not known:
                response.usage.cached_prompt_tokens = 0
            yield response

    return spoil


def test_cache_is_bypassed_and_salted() -> None:
    """The fake reports half of each prompt as cached, which is wrong past the cache and for a new
    salt.
    """
    able = frozenset({"GEN-030"})
    assert outcome_of(Behaviour(breaks=able, spoil=uncached), "USE-006").passed
    assert outcome_of(Behaviour(breaks=able), "USE-006").failed
    assert outcome_of(Behaviour(breaks=able, spoil=salted()), "USE-007").passed
    assert outcome_of(Behaviour(breaks=able), "USE-007").failed


def test_status_of_two_faults_belongs_to_one_of_them() -> None:
    """Either condition may be named, a third one not."""
    assert outcome_of(Behaviour(), "ERR-003", examples=5).passed
    codes = {"GEN-016": grpc.StatusCode.PERMISSION_DENIED}
    assert outcome_of(Behaviour(codes=codes), "ERR-003", examples=20).failed


def sized(limit: int) -> Behaviour:
    scope = capabilities()
    scope.core.max_request_bytes = limit
    return Behaviour(capabilities=scope)


def test_oversized_message_is_refused_by_its_size() -> None:
    """The library's own limit is 4 MiB; a smaller one that nobody enforces is a failure."""
    assert outcome_of(sized(4 << 20), "ERR-008").passed
    assert outcome_of(sized(64 << 10), "ERR-008").failed
    assert outcome_of(sized(1 << 30), "ERR-008").too_large
    assert outcome_of(Behaviour(), "ERR-008").too_large
