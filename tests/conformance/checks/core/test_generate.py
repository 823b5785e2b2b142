"""The checks of request validation against a fake engine that keeps or breaks one row."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace

import grpc
import pytest

from conformance.checks import collect
from conformance.checks.check import Check
from conformance.checks.core import (
    generate_ids,
    generate_input,
    generate_limits,
    generate_sampling,
    generate_stopping,
)
from conformance.checks.violation import Tolerated
from conformance.model.registry import load_registry
from conformance.wire.declared import Declared, TargetClass
from oe_wire import v1
from tests.conformance.fake_engine import Behaviour, FakeEngine, LateRefusal, Stream
from tests.conformance.fake_rules import RULES, WINDOW, model_info
from tests.conformance.run_check import Outcome, run_check

MODULES = (
    generate_ids,
    generate_input,
    generate_limits,
    generate_sampling,
    generate_stopping,
)
CHECKS = collect(load_registry().by_id, MODULES)
# Not a rule of the table: what an id is worth while or after its stream runs, and ModelInfo.
BESIDE_THE_TABLE = {"GEN-003", "GEN-004", "GEN-009", "GEN-011"}
ROWS = sorted(check.removeprefix("OE-CORE-") for check in CHECKS)
REFUSING = [row for row in ROWS if row not in BESIDE_THE_TABLE]


def named(row: str) -> Check:
    return CHECKS[f"OE-CORE-{row}"]


def text_only() -> v1.ModelInfo:
    """A model that reports token ids as not taken."""
    model = model_info()
    model.supports_token_ids_input = False
    return model


def behaviour_for(row: str) -> Behaviour:
    """A right engine on which the row can be judged."""
    return Behaviour(model=text_only()) if row == "GEN-008" else Behaviour()


def outcome_of(behaviour: Behaviour, row: str, examples: int = 0) -> Outcome:
    with FakeEngine(behaviour) as engine:
        return run_check(engine, named(row), examples)


def test_rows_are_the_first_twenty_one() -> None:
    """Every row from GEN-001 to GEN-021 has a check."""
    assert [f"GEN-{number:03}" for number in range(1, 22)] == ROWS


@pytest.mark.parametrize("row", ROWS)
def test_right_engine_passes(row: str) -> None:
    """A right engine passes, on the table and on drawn cases."""
    outcome = outcome_of(behaviour_for(row), row, examples=10)
    assert outcome.passed, (outcome.violation, outcome.skips)


@pytest.mark.parametrize("row", REFUSING)
def test_accepting_what_is_forbidden_fails_its_own_check_only(row: str) -> None:
    """An engine that lacks one rule fails that row and no other."""
    behaviour = replace(behaviour_for(row), breaks=frozenset({row}))
    with FakeEngine(behaviour) as engine:
        failed = {name for name, check in CHECKS.items() if run_check(engine, check, 1).failed}
    assert failed == {f"OE-CORE-{row}"}


@pytest.mark.parametrize("row", REFUSING)
def test_wrong_status_fails(row: str) -> None:
    """A refusal with a status that the row does not name is a failure of the row."""
    codes = {row: grpc.StatusCode.PERMISSION_DENIED}
    assert outcome_of(replace(behaviour_for(row), codes=codes), row).failed


def test_every_rule_of_the_fake_has_a_check_or_is_a_later_row() -> None:
    """The fake's table holds no row of GEN-001 to GEN-021 that this module leaves out."""
    assert {rule.row for rule in RULES if rule.row <= "GEN-021"} == set(REFUSING)


def change_each(change: Callable[[v1.GenerateResponse], None]) -> Callable[..., Stream]:
    def spoil(_: v1.GenerateRequest, stream: Stream) -> Stream:
        for response in stream:
            change(response)
            yield response

    return spoil


def test_normalised_id_fails() -> None:
    """An engine that returns the id in another Unicode form breaks GEN-002."""

    def normalise(response: v1.GenerateResponse) -> None:
        response.request_id = unicodedata.normalize("NFC", response.request_id)

    outcome = outcome_of(Behaviour(spoil=change_each(normalise)), "GEN-002")
    assert outcome.failed
    assert outcome.violation is not None
    assert "byte for byte" in outcome.violation.expected


def test_id_that_is_never_echoed_is_another_rows_matter() -> None:
    """GEN-002 stays silent about an engine that spoils plain ids as well."""

    def blank(response: v1.GenerateResponse) -> None:
        response.request_id = "?"

    outcome = outcome_of(Behaviour(spoil=change_each(blank)), "GEN-002")
    assert not outcome.failed


def test_duplicate_taken_fails() -> None:
    """An engine that serves two requests under one id breaks GEN-003."""
    outcome = outcome_of(Behaviour(reuse_ids=True), "GEN-003")
    assert outcome.failed
    assert outcome.violation is not None
    assert "ALREADY_EXISTS" in outcome.violation.expected


def test_duplicate_that_ends_the_first_fails() -> None:
    """GEN-003 sees that the duplicate was refused but the first request died of it."""
    with FakeEngine() as engine:

        def die_of_duplicate(request: v1.GenerateRequest, stream: Stream) -> Stream:
            for response in stream:
                same = [r for r in engine.requests if r.request_id == request.request_id]
                if len(same) > 1:
                    engine.abort(request.request_id)
                yield response

        engine.behaviour.spoil = die_of_duplicate
        outcome = run_check(engine, named("GEN-003"))
    assert outcome.failed
    assert outcome.violation is not None
    assert outcome.violation.expected == "the first request untouched"


def test_first_request_over_too_soon_is_skipped() -> None:
    """GEN-003 judges nothing when the first request ends before the duplicate is answered."""

    def cut(_: v1.GenerateRequest, stream: Stream) -> Stream:
        yield next(stream)

    outcome = outcome_of(Behaviour(spoil=cut), "GEN-003")
    assert outcome.violation is None
    assert outcome.held == 0


def test_id_never_freed_fails() -> None:
    """An engine that keeps the ids of ended streams breaks GEN-004."""
    assert outcome_of(Behaviour(keep_ids=True), "GEN-004").failed


def test_model_without_input_fails() -> None:
    """A generating model that reports neither kind of input breaks GEN-009."""
    model = model_info()
    model.ClearField("supports_text_input")
    model.supports_token_ids_input = False
    assert outcome_of(Behaviour(model=model), "GEN-009").failed


def legacy(declared: Declared) -> Declared:
    return replace(
        declared,
        target_class=TargetClass.LEGACY,
        engine_info=None,
        engine_scope=None,
        capabilities=None,
    )


class LegacyFake(FakeEngine):
    """The fake as an engine without discovery."""

    @property
    def declared(self) -> Declared:
        return legacy(super().declared)


def test_any_model_name_is_tolerated_on_legacy_engines() -> None:
    """A legacy engine that takes an unknown model name is warned, not failed."""
    with LegacyFake(Behaviour(breaks=frozenset({"GEN-005"}))) as engine:
        check = named("GEN-005")
        cases = list(check.table(engine.declared)) if check.table else []
        unknown = replace(check, table=lambda _: cases[1:])
        outcome = run_check(engine, unknown)
        assert isinstance(outcome.violation, Tolerated)
        assert run_check(engine, replace(check, table=lambda _: cases[:1])).failed


@pytest.mark.parametrize("row", ROWS)
def test_legacy_engine_never_fails_on_what_it_cannot_declare(row: str) -> None:
    """The right fake without discovery fails no row; rows about capabilities are skipped."""
    with LegacyFake(behaviour_for(row)) as engine:
        assert not run_check(engine, named(row), 5).failed


def error_after_acceptance(_: v1.GenerateRequest, stream: Stream) -> Stream:
    first = next(stream)
    yield first
    error = v1.EngineError(code=v1.ERROR_CODE_INVALID_ARGUMENT, message="too long")
    yield v1.GenerateResponse(request_id=first.request_id, error=error)


def test_failure_at_the_window_fails() -> None:
    """An engine that accepts and then gives up at the window breaks GEN-011."""
    outcome = outcome_of(Behaviour(spoil=error_after_acceptance), "GEN-011")
    assert outcome.failed


def test_refusal_at_the_window_passes() -> None:
    """GEN-011 allows to refuse what may outgrow the window."""
    with FakeEngine() as engine:

        def refuse(request: v1.GenerateRequest) -> grpc.StatusCode | None:
            over = len(request.token_ids.ids) + request.stopping.max_tokens > WINDOW
            return grpc.StatusCode.INVALID_ARGUMENT if over else None

        engine.behaviour.refuse_also = refuse
        assert run_check(engine, named("GEN-011")).passed


def wrong_reason(response: v1.GenerateResponse) -> None:
    if response.HasField("finished"):
        response.finished.reason = v1.FINISH_REASON_STOP


def near_window(request: v1.GenerateRequest) -> bool:
    return len(request.token_ids.ids) > WINDOW // 2


def stop_near_window(request: v1.GenerateRequest, stream: Stream) -> Stream:
    for response in stream:
        if near_window(request):
            wrong_reason(response)
        yield response


def test_other_reason_at_the_window_fails() -> None:
    """An output that the window ended has reason LENGTH."""
    assert outcome_of(Behaviour(spoil=stop_near_window), "GEN-011").failed


def test_reason_that_is_always_wrong_is_another_rows_matter() -> None:
    """GEN-011 stays silent about an engine that never says LENGTH."""
    outcome = outcome_of(Behaviour(spoil=change_each(wrong_reason)), "GEN-011")
    assert outcome.violation is None
    assert outcome.held == 0


def overflow(request: v1.GenerateRequest, stream: Stream) -> Stream:
    if near_window(request):
        infos = [v1.TokenInfo(token_id=10)] * 3
        token = v1.TokenOutput(output_index=0, tokens=infos)
        yield v1.GenerateResponse(request_id=request.request_id, token=token)
    yield from stream


def test_output_beyond_the_window_fails() -> None:
    """An engine that writes on past its window breaks GEN-011."""
    assert outcome_of(Behaviour(spoil=overflow), "GEN-011").failed


@pytest.mark.parametrize("row", ["GEN-012", "GEN-016", "GEN-004"])
def test_bad_end_of_a_served_stream_is_another_rows_matter(row: str) -> None:
    """A wrong status after the last output fails no validation row."""

    def ends_badly(_: v1.GenerateRequest, stream: Stream) -> Stream:
        yield from stream
        raise LateRefusal(grpc.StatusCode.INTERNAL)

    assert not outcome_of(Behaviour(spoil=ends_badly), row).failed


def test_two_outputs_by_default_fail() -> None:
    """A request without num_sequences gets one output."""

    def twice(_: v1.GenerateRequest, stream: Stream) -> Iterator[v1.GenerateResponse]:
        for response in stream:
            if response.HasField("finished"):
                other = v1.GenerateResponse.FromString(response.SerializeToString())
                other.finished.output_index = 1
                yield other
            yield response

    assert outcome_of(Behaviour(spoil=twice), "GEN-012").failed


def zero_allowed(*, spoil: Callable[..., Stream] | None = None) -> Behaviour:
    behaviour = Behaviour(breaks=frozenset({"GEN-013"}), spoil=spoil)
    behaviour.capabilities.core.accepts_zero_max_tokens = True
    return behaviour


def test_zero_tokens_where_reported_pass() -> None:
    """An engine that reports to accept zero max_tokens yields an empty output."""
    assert outcome_of(zero_allowed(), "GEN-013").passed


@pytest.mark.parametrize("what", ["token", "reason", "usage", "refused"])
def test_zero_tokens_done_wrong_fail(what: str) -> None:
    """Where zero is reported as accepted, it must be accepted and yield nothing, with LENGTH."""

    def spoil(request: v1.GenerateRequest, stream: Stream) -> Stream:
        if what == "token":
            token = v1.TokenOutput(output_index=0, tokens=[v1.TokenInfo(token_id=10)])
            yield v1.GenerateResponse(request_id=request.request_id, token=token)
        for response in stream:
            if what == "reason":
                wrong_reason(response)
            if what == "usage" and response.HasField("usage"):
                response.usage.completion_tokens = 1
            yield response

    behaviour = zero_allowed(spoil=spoil)
    if what == "refused":
        behaviour = replace(behaviour, breaks=frozenset())
    assert outcome_of(behaviour, "GEN-013").failed


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        ("GEN-016", "temperature", 0.0),
        ("GEN-017", "top_p", 1.0),
        ("GEN-018", "top_k", -1),
        ("GEN-018", "top_k", 0),
        ("GEN-019", "min_p", 0.0),
        ("GEN-020", "repetition_penalty", 1.0),
    ],
)
def test_refusing_a_legal_bound_fails_its_own_check_only(
    row: str, field: str, value: float
) -> None:
    """An engine that refuses the legal value at a bound fails that row and no other."""

    def refuse(request: v1.GenerateRequest) -> grpc.StatusCode | None:
        set_fields = {descriptor.name: held for descriptor, held in request.sampling.ListFields()}
        return grpc.StatusCode.INVALID_ARGUMENT if set_fields.get(field) == value else None

    with FakeEngine(Behaviour(refuse_also=refuse)) as engine:
        failed = {name for name, check in CHECKS.items() if run_check(engine, check, 1).failed}
    assert failed == {f"OE-CORE-{row}"}


def test_busy_engine_is_not_blamed() -> None:
    """A refusal for want of room says nothing about validation."""

    def busy(request: v1.GenerateRequest) -> grpc.StatusCode:
        return grpc.StatusCode.RESOURCE_EXHAUSTED

    outcome = outcome_of(Behaviour(refuse_also=busy), "GEN-012")
    assert outcome.violation is None


def test_message_before_refusal_is_another_rows_matter() -> None:
    """A stream that fails with the right status after a message fails no validation row."""

    def late(_: v1.GenerateRequest, stream: Stream) -> Stream:
        yield next(stream)
        raise LateRefusal(grpc.StatusCode.INVALID_ARGUMENT)

    outcome = outcome_of(Behaviour(breaks=frozenset({"GEN-006"}), spoil=late), "GEN-006")
    assert outcome.violation is None
    assert outcome.skips
    assert "before the refusal" in outcome.skips[0]


@pytest.mark.parametrize("row", ["GEN-010", "GEN-011", "GEN-015"])
def test_unaffordable_window_is_skipped(row: str) -> None:
    """A window beyond what a run can pay for gives a reason, not a request."""
    model = model_info()
    model.max_context_length = 1_000_000
    outcome = outcome_of(Behaviour(model=model), row)
    assert outcome.violation is None
    assert outcome.spent is not None
    assert outcome.spent.requests == 0
    assert outcome.skips is not None
    assert outcome.too_large


@pytest.mark.parametrize(
    ("size", "fill"), [(64, "x"), (64, "é"), (65, "語"), (64, "🙂"), (40, "e\u0301"), (5, "é")]
)
def test_sized_id_has_that_many_bytes(size: int, fill: str) -> None:
    """Ids of any alphabet come out at exactly the size that was asked for."""
    made = generate_ids.sized_id("oe-0123456789abcdef", size, fill)
    assert len(made.encode()) == size
    assert made.isprintable()
