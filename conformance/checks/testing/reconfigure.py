"""Reconfiguration on demand: the pair it answers, and that what it changes is enforced."""

from __future__ import annotations

import grpc

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import ask_model, capabilities, read
from conformance.checks.core.judging import BUSY, outcome, send_cut
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import TESTING, reconfigured
from conformance.model.case import Case
from conformance.strategies import simple_case
from conformance.wire.transcript import Transcript
from oe_wire import v1

Pair = tuple[int, int]


def _pair(message: v1.Capabilities | v1.ReconfigureResponse) -> Pair:
    return message.configuration_epoch, message.capability_revision


@check(
    "OE-TEST-006",
    advice="Count capability_revision up in the same step that puts the change in force, and "
    "answer with the new pair.",
)
def pair_grows(probe: Probe, _: Case) -> None:
    """The answer to a Reconfigure is a greater pair, and Capabilities carry it."""
    before = _pair(capabilities(probe, probe.declared.model_name).message)
    with reconfigured(probe) as changed:
        now = capabilities(probe, probe.declared.model_name)
    if _pair(changed) <= before:
        probe.fail(f"a pair above {before}", f"{_pair(changed)}")
    if _pair(now.message) != _pair(changed):
        wanted = f"the pair {_pair(changed)} in Capabilities, as Reconfigure answered"
        probe.fail(wanted, f"{_pair(now.message)}", now.call)


@check(
    "OE-TEST-007",
    advice="Let Reconfigure replace the limits that both discovery and validation read.",
)
def limit_moved(probe: Probe, _: Case) -> None:
    """A new max_num_sequences is reported, reached and enforced."""
    declared = probe.declared.max_num_sequences
    most = declared - 1 if declared > 1 else declared + 1
    with reconfigured(probe, max_num_sequences=most):
        call = ask_model(probe, probe.declared.model_name)
        info = call.messages[0] if call.ending.ok and call.messages else None
        told = info.generation.max_num_sequences if isinstance(info, v1.ModelInfo) else None
        at_limit = _outputs(probe, most)
        above = _outputs(probe, most + 1)
    if told != most:
        probe.fail(f"max_num_sequences {most} in ModelInfo", f"{told}", call)
    if at_limit.rejected and at_limit.ending.code not in BUSY:
        probe.fail(f"acceptance of {most} outputs", outcome(at_limit), at_limit)
    if above.events and above.ending.code is grpc.StatusCode.INVALID_ARGUMENT:
        return  # messages came before the refusal, which is not this row's matter
    if above.accepted:
        probe.fail(f"INVALID_ARGUMENT for {most + 1} outputs", outcome(above), above)
    probe.expect_rejected(above, grpc.StatusCode.INVALID_ARGUMENT)


def _outputs(probe: Probe, count: int) -> Transcript:
    case = simple_case(probe.declared, num_sequences=count, temperature=1.0)
    return send_cut(probe, case, probe.prepared(case))


@check(
    "OE-TEST-008",
    advice="Check the whole request before any of it takes effect.",
)
def zero_sequences_refused(probe: Probe, _: Case) -> None:
    """max_num_sequences 0 is refused, together with what else the request asks for."""
    before = capabilities(probe, probe.declared.model_name).message
    change = v1.ReconfigureRequest(
        supports_priority=not before.generation.supports_priority, max_num_sequences=0
    )
    call = probe.call(f"{TESTING}/Reconfigure", change)
    after = capabilities(probe, probe.declared.model_name)
    if call.ending.ok:
        back = v1.ReconfigureRequest(supports_priority=before.generation.supports_priority)
        if before.generation.HasField("max_num_sequences"):
            back.max_num_sequences = before.generation.max_num_sequences
        read(probe, f"{TESTING}/Reconfigure", back, v1.ReconfigureResponse)
        probe.fail("INVALID_ARGUMENT for max_num_sequences 0", describe(call), call)
    probe.expect_rejected(call, grpc.StatusCode.INVALID_ARGUMENT, because="0 is below 1")
    if after.message != before:
        probe.fail("unchanged Capabilities after the refusal", "other ones", after.call)
