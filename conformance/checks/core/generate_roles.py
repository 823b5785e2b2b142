"""Requests that the engine's role cannot serve (GEN-032)."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.checks.check import check
from conformance.checks.core.judging import expect_refusal, send_cut
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.oracle import expect
from conformance.strategies import simple_request
from conformance.strategies.option_faults import SESSION
from conformance.wire.declared import Declared


def _mismatches(declared: Declared) -> Iterable[Case]:
    """A plain request for roles that need a hand-over, and a hand-over for those that take none."""
    plain = simple_request(declared)
    handed = simple_request(declared)
    handed.kv.session.CopyFrom(SESSION)
    return Case(plain), Case(handed)


@check(
    "OE-CORE-GEN-032",
    advice="Compare kv.session with the role before acceptance and answer FAILED_PRECONDITION: a "
    "decode engine needs one, an engine without the decode side of kv_handoff takes none.",
    table=_mismatches,
)
def role_mismatch(probe: Probe, case: Case) -> None:
    """What another role would serve is refused."""
    request = probe.prepared(case)
    expectation = expect(request, case.metadata, probe.declared)
    if probe.requirement not in expectation.broken:
        probe.skip(f"the role does not decide: {expectation.describe()}")
    # A model that takes no input at all is no reason to doubt: then either rule may be named.
    codes = frozenset().union(*expectation.broken.values())
    transcript = send_cut(probe, case, request)
    expect_refusal(probe, transcript, codes)
