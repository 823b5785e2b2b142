"""The checks that laws judge, against a fake engine that is right or spoils its streams."""

from __future__ import annotations

from dataclasses import replace

import grpc
import pytest

from conformance.checks import all_checks, collect
from conformance.checks.check import Check
from conformance.checks.core import failures, streams, usage
from conformance.checks.core.laws import law_check
from conformance.laws import laws_of
from conformance.laws.law import GENERATE
from conformance.model.registry import load_registry
from oe_wire import v1
from tests.conformance.checks.core.spoilers import SPOILERS
from tests.conformance.fake_engine import Behaviour, FakeEngine, LateRefusal, Stream
from tests.conformance.fake_rules import RULES, model_info
from tests.conformance.run_check import Outcome, run_check

CHECKS = collect(load_registry().by_id, (streams, usage, failures))
ROWS = sorted(check.removeprefix("OE-CORE-") for check in CHECKS)
# A right engine shows none of this: they need a fault that a hook provokes.
NEED_A_FAULT = {"STREAM-011", "USE-008", "ERR-002"}
# Laws whose checks need more than one call, or more than an ordinary request.
ELSEWHERE = {"ENUM-002", "STREAM-025", "STREAM-026", "USE-006"}
# Broken by refusals, not by streams.
OF_REFUSALS = {"ERR-004", "ERR-006", "ERR-007", "GEN-033"}


def named(row: str) -> Check:
    return CHECKS[f"OE-CORE-{row}"]


def outcome_of(behaviour: Behaviour, row: str, examples: int = 0) -> Outcome:
    with FakeEngine(behaviour) as engine:
        return run_check(engine, named(row), examples)


def test_each_law_has_one_check() -> None:
    """Whatever is a law is driven by a check of this group, which has one check beside, or by one
    of the groups that lead up to it.
    """
    elsewhere = {f"OE-CORE-{row}" for row in ELSEWHERE}
    assert set(CHECKS) - {"OE-CORE-GEN-033"} == laws_of(GENERATE) - elsewhere
    assert elsewhere <= set(all_checks())


@pytest.mark.parametrize("row", [row for row in ROWS if row not in NEED_A_FAULT])
def test_right_engine_passes(row: str) -> None:
    """A right engine meets the precondition with the table alone and passes, also drawn cases."""
    outcome = outcome_of(Behaviour(), row, examples=8)
    assert outcome.passed, (outcome.violation, outcome.skips)
    assert outcome_of(Behaviour(), row).passed


@pytest.mark.parametrize("row", sorted(NEED_A_FAULT))
def test_without_a_fault_nothing_is_judged(row: str) -> None:
    """A row about engine errors is not passed by an engine that had none."""
    outcome = outcome_of(Behaviour(), row)
    assert outcome.violation is None
    assert outcome.held == 0


@pytest.mark.parametrize("row", [row for row in ROWS if row not in OF_REFUSALS])
def test_spoilt_stream_fails(row: str) -> None:
    """An engine whose streams break the row fails its check by the table alone."""
    # An engine that answers invalid requests with an event shows what is wrong with the event.
    lax = frozenset(rule.row for rule in RULES) if row == "ERR-005" else frozenset()
    outcome = outcome_of(Behaviour(spoil=SPOILERS[row], breaks=lax), row)
    assert outcome.failed, outcome.skips
    assert outcome.violation is not None
    assert outcome.violation.requirement == f"OE-CORE-{row}"


def test_missing_trailers_are_found() -> None:
    """A refusal without its ErrorCode in the trailers breaks ERR-004."""
    assert outcome_of(Behaviour(trailers=False), "ERR-004").failed


def _late_refusal(request: v1.GenerateRequest, stream: Stream) -> Stream:
    yield next(stream)
    raise LateRefusal(grpc.StatusCode.INVALID_ARGUMENT)


def test_message_before_a_refusal_is_found() -> None:
    """A status of refusal after a message breaks GEN-033."""
    behaviour = Behaviour(spoil=_late_refusal, breaks=frozenset({"GEN-016"}))
    outcome = outcome_of(behaviour, "GEN-033")
    assert outcome.failed
    assert outcome.violation is not None
    assert outcome.violation.event == 0


# Candidates without their flag only SHOULD be refused, so no fault is made of them.
@pytest.mark.parametrize("row", sorted({rule.row for rule in RULES} - {"GEN-026"}))
def test_internal_for_any_fault_is_found(row: str) -> None:
    """INTERNAL for whichever bad field breaks ERR-006."""
    codes = {row: grpc.StatusCode.INTERNAL}
    model = model_info()
    if row == "GEN-008":
        model.supports_text_input = False
    assert outcome_of(Behaviour(codes=codes, model=model), "ERR-006").failed


def test_prompt_in_a_status_message_is_found() -> None:
    """A status message that quotes the prompt breaks ERR-007."""
    quoting = Behaviour(details=lambda request: f"bad prompt {request.prompt}")
    assert outcome_of(quoting, "ERR-007").failed


def _without_cached_tokens(_: v1.GenerateRequest, stream: Stream) -> Stream:
    for response in stream:
        if response.HasField("usage"):
            response.usage.ClearField("cached_prompt_tokens")
        yield response


def test_optional_counts_left_out_pass() -> None:
    """An engine that reports no cached tokens can't report too many."""
    assert outcome_of(Behaviour(spoil=_without_cached_tokens), "USE-005").passed


def test_text_only_engine_passes_what_applies() -> None:
    """Rows that don't depend on token ids are judged on an engine that takes text only."""
    model = model_info()
    model.supports_token_ids_input = False
    for row in ("STREAM-001", "STREAM-008", "STREAM-015", "USE-002"):
        assert outcome_of(Behaviour(model=model), row, 5).passed


def test_token_only_engine_passes_what_applies() -> None:
    """An engine that takes token ids only is judged on all rows that a right engine shows."""
    model = model_info()
    model.supports_text_input = False
    for row in ("STREAM-001", "STREAM-010", "STREAM-015", "USE-004", "ERR-006"):
        assert outcome_of(Behaviour(model=model), row, 5).passed


def test_row_without_law_is_an_import_error() -> None:
    """A law check for a row that no law judges can't be made."""
    with pytest.raises(ImportError, match="no law for OE-CORE-STREAM-999"):
        law_check("STREAM-999", advice="", table=lambda _: ())


def test_two_checks_of_one_row_are_an_import_error() -> None:
    """Collect names both checks of a requirement."""
    twin = replace(named("STREAM-001"), name="elsewhere.twin")
    module = type(streams)("twins")
    module.__dict__.update(first=named("STREAM-001"), second=twin)
    with pytest.raises(ImportError, match=r"elsewhere\.twin are both for OE-CORE-STREAM-001"):
        collect(load_registry().by_id, [module])


def test_check_of_an_unknown_row_is_an_import_error() -> None:
    """Collect names the check and the id that is no requirement."""
    module = type(streams)("strange")
    strange = replace(named("STREAM-001"), requirement="OE-CORE-NONE-1", name="x.y")
    module.__dict__.update(strange=strange)
    with pytest.raises(ImportError, match=r"x\.y is for OE-CORE-NONE-1"):
        collect(load_registry().by_id, [module])


def test_every_check_has_advice() -> None:
    """An engine author is told how to mend each failure, in one or two sentences."""
    for check in CHECKS.values():
        assert 20 < len(check.advice) < 250, check.name
        assert check.advice.endswith(".")
