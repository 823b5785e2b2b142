"""Guides that are missing, not offered, or make no sense (GEN-023 and 024)."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.checks.check import check
from conformance.checks.core.judging import (
    any_with,
    engine_errors,
    expect_refusal,
    faults_of,
    judge_offer,
    send_cut,
    skip_uncertain,
)
from conformance.checks.probe import Probe
from conformance.laws.guided import keeps_to_guide
from conformance.model.case import Case
from conformance.oracle import expect
from conformance.strategies import simple_request
from conformance.strategies.faults import with_fault
from conformance.strategies.guides import GUIDED_TOKENS
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1


def _not_offered(declared: Declared) -> Iterable[Case]:
    """With room for a whole guided output, which shows an engine that keeps to the guide."""
    base = simple_request(declared, max_tokens=GUIDED_TOKENS, temperature=0.0)
    return with_fault(declared, base, "OE-CORE-GEN-023")


@check(
    "OE-CORE-GEN-023",
    advice="Refuse a GuidedDecoding without a guide, and a guide of a mode that ModelInfo does not "
    "list. To generate without the guide is the worst answer: callers rely on the format.",
    table=_not_offered,
    strategy=any_with("GEN-023"),
)
def guide_not_offered(probe: Probe, case: Case) -> None:
    """A guide of a mode that is not offered, or none at all, is refused and never ignored."""

    def honoured(transcript: Transcript) -> bool:
        return keeps_to_guide.judge(transcript, probe.declared) is True

    judge_offer(probe, case, honoured)


@check(
    "OE-CORE-GEN-024",
    advice="Compile the guide before the request is accepted and map a failure to "
    "INVALID_ARGUMENT. If it is compiled later, send one EngineError INVALID_ARGUMENT.",
    table=faults_of("GEN-024"),
    strategy=any_with("GEN-024"),
)
def malformed_guide(probe: Probe, case: Case) -> None:
    """A guide that does not compile is the caller's fault, before acceptance or after it."""
    if case.request is None:
        skip_uncertain(probe)
    request = probe.prepared(case)
    expectation = expect(request, case.metadata, probe.declared)
    if not expectation.only(probe.requirement):
        probe.skip(f"the request decides nothing about this row: {expectation.describe()}")
    transcript = send_cut(probe, case, request)
    if not _told_late(transcript):
        expect_refusal(probe, transcript, expectation.broken[probe.requirement])


def _told_late(transcript: Transcript) -> bool:
    """Whether one EngineError INVALID_ARGUMENT is all that came."""
    errors = [error.code for _, error in engine_errors(transcript)]
    return errors == [v1.ERROR_CODE_INVALID_ARGUMENT] and len(transcript.events) == 1
