"""How failures are reported: by status or by event, in what words (ERR rows, GEN-033)."""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.checks.check import Check, check
from conformance.checks.core import stream_cases as tables
from conformance.checks.core.failing_requests import any_failing, failing, follow_failure
from conformance.checks.core.judging import engine_errors, send_cut
from conformance.checks.core.laws import follow_optional, law_check
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.oracle import expect
from conformance.strategies import cases, single_faults
from conformance.wire.declared import Declared


def _served_or_refused(declared: Declared) -> st.SearchStrategy[Case]:
    return cases(declared) | single_faults(declared)


@check(
    "OE-CORE-GEN-033",
    advice="Validate before the first response is written; what has been refused gets a status "
    "and no event.",
    table=tables.one_fault_per_row,
    strategy=single_faults,
)
def silent_refusal(probe: Probe, case: Case) -> None:
    """A refused request brings no message."""
    request = probe.prepared(case)
    if not expect(request, case.metadata, probe.declared).refused:
        probe.skip("the request is not certain to be refused")
    transcript = send_cut(probe, case, request)
    if transcript.ending.ok or not transcript.undisturbed:
        probe.skip("the request was not refused")
    if any(True for _ in engine_errors(transcript)):
        probe.skip("the failure was told twice, which is another row's matter")
    if transcript.events:
        probe.fail("no message before the refusal", describe(transcript), transcript, 0)


CHECKS: tuple[Check, ...] = (
    law_check(
        "ERR-001",
        advice="After acceptance report a failure as EngineError and close with OK; before it "
        "use a status and send no event.",
        table=tables.plain_and_faulty,
        strategy=_served_or_refused,
    ),
    law_check(
        "ERR-002",
        advice="Give every EngineError a code and a message.",
        table=failing,
        strategy=any_failing,
        body=follow_failure,
    ),
    law_check(
        "ERR-004",
        advice="Add the trailer openengine-error-code with the ErrorCode name that belongs to "
        "the status.",
        table=tables.one_fault_per_row,
        strategy=single_faults,
    ),
    law_check(
        "ERR-005",
        advice="Set retryable only for failures that the same request can survive later.",
        table=tables.one_fault_per_row,
        strategy=single_faults,
        body=follow_optional,
    ),
    law_check(
        "ERR-006",
        advice="Validate the field before it is used: an exception on the way became INTERNAL or "
        "UNKNOWN.",
        table=tables.every_fault,
        strategy=single_faults,
    ),
    law_check(
        "ERR-007",
        advice="Name the field in error messages, never the prompt or a metadata value.",
        table=tables.marked,
    ),
)
