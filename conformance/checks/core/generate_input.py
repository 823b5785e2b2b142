"""What is asked for: the model and the kind of input (GEN-005 to GEN-009)."""

from __future__ import annotations

import grpc

from conformance.checks.check import check
from conformance.checks.core.judging import (
    faults_of,
    judge,
    outcome,
    send_cut,
    skip_uncertain,
)
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.oracle import expect
from oe_wire import v1


@check(
    "OE-CORE-GEN-005",
    advice="Compare model with the served name and its aliases; an empty name is "
    "INVALID_ARGUMENT and a name that is not served is NOT_FOUND.",
    table=faults_of("GEN-005"),
)
def wrong_model(probe: Probe, case: Case) -> None:
    """A request must name a model that is served."""
    if case.request is None:
        skip_uncertain(probe)
    request = probe.prepared(case)
    expectation = expect(request, case.metadata, probe.declared)
    if not (probe.declared.legacy and request.model and expectation.only(probe.requirement)):
        judge(probe, case)
        return
    transcript = send_cut(probe, case, request)
    if transcript.accepted:
        probe.tolerate("NOT_FOUND for an unknown model", outcome(transcript), transcript)
    probe.expect_rejected(transcript, grpc.StatusCode.NOT_FOUND, because="the model is unknown")


@check(
    "OE-CORE-GEN-006",
    advice="Refuse a request whose input oneof is not set; do not treat it as an empty prompt.",
    table=faults_of("GEN-006"),
)
def no_input(probe: Probe, case: Case) -> None:
    """A request without any input is refused."""
    judge(probe, case)


@check(
    "OE-CORE-GEN-007",
    advice="Refuse token_ids that is set and holds no id; the presence of the field is not enough.",
    table=faults_of("GEN-007"),
)
def empty_tokens(probe: Probe, case: Case) -> None:
    """An empty list of token ids is refused."""
    judge(probe, case)


@check(
    "OE-CORE-GEN-008",
    advice="Refuse the kind of input that ModelInfo reports as false, or report it as true.",
    table=faults_of("GEN-008"),
)
def disabled_input(probe: Probe, case: Case) -> None:
    """The kind of input that is reported false is refused."""
    judge(probe, case)


@check(
    "OE-CORE-GEN-009",
    advice="Set supports_text_input or supports_token_ids_input in ModelInfo, whichever the "
    "model takes; leaving both out says that nothing can be sent.",
)
def some_input(probe: Probe, _: Case) -> None:
    """A model that generates takes text or token ids, and says so."""
    name = "Control" if probe.declared.legacy else "OpenEngineDiscovery"
    request = v1.GetModelInfoRequest(model=probe.declared.model_name)
    transcript = probe.call(f"{name}/GetModelInfo", request)
    info = transcript.messages[0] if transcript.messages else None
    if not isinstance(info, v1.ModelInfo) or not transcript.ending.ok:
        probe.skip("no ModelInfo")
    if probe.declared.role == "prefill" or not info.HasField("generation"):
        probe.skip("the model does not generate")
    if not (info.supports_text_input or info.supports_token_ids_input):
        probe.fail(
            "supports_text_input or supports_token_ids_input true",
            "neither is present and true",
            transcript,
        )
