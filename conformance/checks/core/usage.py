"""Token counts at the end of streams, aborted ones included (USE-001 to 009)."""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.checks.check import Check
from conformance.checks.core import stream_cases as tables
from conformance.checks.core.failing_requests import any_failing, failing, follow_failure
from conformance.checks.core.laws import follow_optional, law_check
from conformance.checks.probe import Probe
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.strategies import Feature
from conformance.wire.declared import Declared
from conformance.wire.transcript import ActionKind
from oe_wire import v1


def _aborted(declared: Declared) -> st.SearchStrategy[Case]:
    (base, *_) = tables.aborted(declared)
    return st.integers(1, 8).map(lambda count: Case(base.request, params={"messages": count}))


def abort_midway(probe: Probe, case: Case) -> None:
    """Abort the case's request after some messages, then judge its stream."""
    request = probe.prepared(case)
    live = probe.start(GENERATE, request, metadata=case.metadata)
    if live.wait_event(case.params["messages"]) and not live.done:
        live.act(ActionKind.ABORT)
        probe.call("Control/Abort", v1.AbortRequest(request_id=request.request_id))
    probe.finish(live)
    probe.settle()


CHECKS: tuple[Check, ...] = (
    law_check(
        "USE-001",
        advice="Attach usage to the last response of the stream and to no other.",
        table=tables.counts,
    ),
    law_check(
        "USE-002",
        advice="Count produced tokens over all outputs, with at most one withheld stop or end "
        "token each.",
        table=tables.counts,
        features=(Feature.SEVERAL,),
    ),
    law_check(
        "USE-003",
        advice="Compute total_tokens as prompt_tokens plus completion_tokens when usage is sent.",
        table=tables.plain,
    ),
    law_check(
        "USE-004",
        advice="Count the prompt once, whatever num_sequences is and however much was cached.",
        table=tables.token_prompts,
        features=(Feature.TOKENS, Feature.SEVERAL),
    ),
    law_check(
        "USE-005",
        advice="Report cached and reasoning tokens as parts of prompt_tokens and "
        "completion_tokens.",
        table=tables.cached,
        body=follow_optional,
    ),
    law_check(
        "USE-008",
        advice="Put usage on the EngineError response as well once a token has been sent.",
        table=failing,
        strategy=any_failing,
        body=follow_failure,
    ),
    law_check(
        "USE-009",
        advice="On abort send GenerationFinished(CANCELLED) with the usage up to then.",
        table=tables.aborted,
        strategy=_aborted,
        body=abort_midway,
    ),
)
