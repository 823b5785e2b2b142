"""Stop conditions that say nothing (GEN-021)."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from conformance.checks.check import check
from conformance.checks.core.judging import faults_of, judge
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.strategies import requests, simple_request
from conformance.wire.declared import Declared
from oe_wire import v1

VOID = (v1.StopCondition(), v1.StopCondition(stop_text=""))


def _void_conditions(declared: Declared) -> Iterable[Case]:
    yield from faults_of("GEN-021")(declared)
    # Behind a good one: an engine may look at the first only.
    for void in VOID:
        request = simple_request(declared)
        request.stopping.conditions.extend([v1.StopCondition(stop_text="e"), void])
        yield Case(request)


def _with_void(declared: Declared) -> st.SearchStrategy[Case]:
    def with_void(request: v1.GenerateRequest, void: v1.StopCondition) -> Case:
        changed = v1.GenerateRequest()
        changed.CopyFrom(request)
        changed.stopping.conditions.append(void)
        return Case(changed)

    return st.builds(with_void, requests(declared), st.sampled_from(VOID))


@check(
    "OE-CORE-GEN-021",
    advice="Refuse a StopCondition without a variant and one with an empty text: an empty text "
    "matches everywhere.",
    table=_void_conditions,
    strategy=_with_void,
)
def void_stop_condition(probe: Probe, case: Case) -> None:
    """Each stop condition says on what to stop."""
    judge(probe, case)
