"""The status of refusals that no other row fixes alone (ERR-003).

Other rows are about one condition each. Here are conditions that none of them names, and requests
with several at once, on which the status must belong to one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import grpc
from hypothesis import strategies as st

from conformance.checks.check import check
from conformance.checks.core.judging import BUSY, outcome, send_cut
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.oracle import Expectation, expect
from conformance.oracle.expectation import INVALID, Codes
from conformance.oracle.limits import limits_of
from conformance.strategies import Fault, faults, requests, simple_request
from conformance.strategies.fault import UINT32_MAX
from conformance.wire.declared import Declared
from oe_wire import v1


def _outside(declared: Declared) -> Iterator[tuple[str, v1.GenerateRequest]]:
    """Requests that an engine may refuse, all because something is out of range."""
    if limits_of(declared).token_input:
        request = simple_request(declared, tokens=1)
        request.token_ids.ids[:] = [UINT32_MAX]
        yield "a prompt token outside the vocabulary", request
    request = simple_request(declared)
    request.stopping.conditions.add(stop_token_id=UINT32_MAX)
    yield "a stop token outside the vocabulary", request
    model = declared.model if declared.model is not None else v1.ModelInfo()
    if model.generation.prompt_logprobs.supported:
        request = simple_request(declared)
        request.response.return_prompt_logprobs = True
        request.response.prompt_logprob_start = UINT32_MAX
        yield "prompt_logprob_start beyond the prompt", request
    if limits_of(declared).text_input:
        yield "an empty prompt", simple_request(declared, prompt="")
    request = simple_request(declared)
    request.request_id = "\u0007oe-conform\u0007"
    yield "a request id that does not print", request


def _conditions(declared: Declared) -> Iterable[Case]:
    for condition, request in _outside(declared):
        yield Case(request, params={"condition": condition})
    found = faults(declared)
    for at, first in enumerate(found):
        # Each with one of another row, in an order that meets many pairs.
        second = found[(at * 7 + len(found) // 2) % len(found)]
        if at % 4 == 0 and first.rule != second.rule:
            yield _both(simple_request(declared), first, second)


def _both(base: v1.GenerateRequest, *wrongs: Fault) -> Case:
    request = v1.GenerateRequest()
    request.CopyFrom(base)
    for wrong in wrongs:
        wrong.apply(request)
    return Case(request)


def _any_two(declared: Declared) -> st.SearchStrategy[Case]:
    found = st.sampled_from(faults(declared))
    return st.builds(_both, requests(declared), found, found)


@check(
    "OE-CORE-ERR-003",
    advice="Map the condition to its status in one place: INVALID_ARGUMENT for what is wrong with "
    "the request itself, NOT_FOUND for a name that does not exist, FAILED_PRECONDITION for a "
    "wrong role or state.",
    table=_conditions,
    strategy=_any_two,
)
def status_fits_condition(probe: Probe, case: Case) -> None:
    """A refusal has the status of a condition that holds; whether to refuse is no matter here."""
    if not probe.declared.generates:
        probe.skip("the role or the model refuses every request")
    request = probe.prepared(case)
    condition = case.params.get("condition")
    codes = INVALID
    if condition is None:
        expectation = expect(request, case.metadata, probe.declared)
        if len(expectation.broken) < 2:
            probe.skip("one row decides on this request alone")
        condition, codes = " and ".join(sorted(expectation.broken)), _allowed(expectation)
    transcript = send_cut(probe, case, request)
    if not transcript.rejected or transcript.ending.code in BUSY:
        probe.skip(f"the request was not refused: {outcome(transcript)}")
    if transcript.ending.code not in codes:
        names = " or ".join(sorted(code.name for code in codes))
        probe.fail(f"{names} for {condition}", transcript.ending.code.name, transcript)


def _allowed(expectation: Expectation) -> Codes:
    """Statuses of every condition that holds; of the undecided ones any of the input's."""
    codes: set[grpc.StatusCode] = set()
    for each in (*expectation.broken.values(), *expectation.either.values()):
        codes |= each
    return frozenset(codes | INVALID if expectation.unknown else codes)
