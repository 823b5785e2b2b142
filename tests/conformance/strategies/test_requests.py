"""The strategies against the oracle, on engines with different declarations."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from conformance.model.case import FRESH_ID, Case, from_json, to_json
from conformance.oracle import expect
from conformance.oracle.limits import limits_of, window
from conformance.strategies import Feature, cases, faults, requests, simple_request, single_faults
from conformance.strategies.faults import long_prompt_possible, with_fault
from conformance.strategies.requests import MAX_SEQUENCES, MAX_TOKENS
from oe_wire import v1
from tests.conformance.engines import ENGINES

QUICK = settings(
    max_examples=30,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
ENGINE = pytest.mark.parametrize("engine", ENGINES)


def request_of(case: Case) -> v1.GenerateRequest:
    if not isinstance(case.request, v1.GenerateRequest):
        pytest.fail("the case holds no GenerateRequest")
    return case.request


@ENGINE
def test_simplest_request_is_accepted(engine: str) -> None:
    """The request that everything shrinks to is legal on every engine."""
    assert expect(simple_request(ENGINES[engine]), (), ENGINES[engine]).accepted


@ENGINE
def test_drawn_requests_are_accepted_and_cheap(engine: str) -> None:
    """Valid requests are valid by the oracle, under a fresh id, and cost few tokens."""
    declared = ENGINES[engine]

    @QUICK
    @given(requests(declared))
    def run(request: v1.GenerateRequest) -> None:
        assert expect(request, (), declared).describe() == "accepted"
        assert request.request_id == FRESH_ID
        assert _repeatable(request)
        assert 1 <= request.stopping.max_tokens <= MAX_TOKENS
        assert request.sampling.num_sequences <= MAX_SEQUENCES
        assert len(request.prompt.encode()) + MAX_TOKENS < window(limits_of(declared)) + 48

    run()


def _repeatable(request: v1.GenerateRequest) -> bool:
    """Whether a deterministic engine answers the request the same way twice."""
    sampling = request.sampling
    greedy = sampling.HasField("temperature") and sampling.temperature == 0
    return greedy or sampling.HasField("seed") or request.stopping.max_tokens == 1


@ENGINE
@pytest.mark.parametrize("feature", Feature)
def test_feature_is_there_where_declared(engine: str, feature: Feature) -> None:
    """Each drawn request has the feature, unless the engine does not declare it."""
    declared = ENGINES[engine]
    able = _able(engine, feature)

    @settings(QUICK, max_examples=10)
    @given(cases(declared, feature))
    def run(case: Case) -> None:
        request = request_of(case)
        assert expect(request, case.metadata, declared).accepted
        assert not able or _has(request, feature)

    run()


def _able(engine: str, feature: Feature) -> bool:
    declared = ENGINES[engine]
    generation = (declared.model or v1.ModelInfo()).generation
    if feature is Feature.SEVERAL:
        return generation.max_num_sequences > 1
    if feature is Feature.TOKENS:
        return bool(limits_of(declared).token_input)
    if feature is Feature.STOP_IN_OUTPUT:
        return generation.supports_stop_in_output
    if feature in {Feature.PROMPT_LOGPROBS, Feature.PROMPT_CANDIDATES}:
        return generation.prompt_logprobs.supported
    if feature in {Feature.OUTPUT_LOGPROBS, Feature.OUTPUT_CANDIDATES}:
        return generation.output_logprobs.supported
    return True


def _has(request: v1.GenerateRequest, feature: Feature) -> bool:
    stops = request.stopping.conditions
    seen = {
        Feature.TOKENS: request.HasField("token_ids"),
        Feature.SEVERAL: request.sampling.num_sequences > 1,
        Feature.LONG: request.stopping.max_tokens >= 2,
        Feature.STOP_TEXT: any(stop.stop_text for stop in stops),
        Feature.STOP_TOKEN: any(stop.HasField("stop_token_id") for stop in stops),
        Feature.STOP_IN_OUTPUT: request.stopping.include_stop_in_output,
        Feature.MIN_TOKENS: request.stopping.min_tokens >= 2,
        Feature.IGNORE_EOS: request.stopping.ignore_eos,
        Feature.PROMPT_LOGPROBS: request.response.return_prompt_logprobs,
        Feature.OUTPUT_LOGPROBS: request.response.return_output_logprobs,
        Feature.OUTPUT_CANDIDATES: request.response.HasField("output_candidates"),
        Feature.PROMPT_CANDIDATES: request.response.HasField("prompt_candidates"),
    }
    return seen[feature]


@ENGINE
def test_each_fault_breaks_exactly_its_rule(engine: str) -> None:
    """One illegal thing in a valid request is refused for its own rule and no other."""
    declared = ENGINES[engine]

    @QUICK
    @given(requests(declared), st.sampled_from(faults(declared)))
    def run(base: v1.GenerateRequest, fault: object) -> None:
        request = v1.GenerateRequest()
        request.CopyFrom(base)
        chosen = next(each for each in faults(declared) if each.name == getattr(fault, "name", ""))
        chosen.apply(request)
        expectation = expect(request, (), declared)
        assert set(expectation.broken) == {chosen.rule}, (chosen.name, expectation.describe())

    run()


@ENGINE
def test_simplest_request_with_each_fault_decides_the_status(engine: str) -> None:
    """On the simplest request nothing besides the fault is in doubt."""
    declared = ENGINES[engine]
    base = simple_request(declared)
    for rule in {fault.rule for fault in faults(declared)}:
        for case in with_fault(declared, base, rule):
            expectation = expect(request_of(case), (), declared)
            assert expectation.only(rule), expectation.describe()


def test_every_refusing_row_has_a_fault_on_a_full_engine() -> None:
    """Faults cover each row that a request alone can break."""
    declared = ENGINES["full"]
    rows = {fault.rule.removeprefix("OE-CORE-") for fault in faults(declared)}
    first = {f"GEN-{number:03}" for number in range(1, 23)}
    beside = {"GEN-003", "GEN-004", "GEN-008", "GEN-009", "GEN-011"}
    assert first - beside <= rows
    assert "OE-CORE-GEN-008" in {fault.rule for fault in faults(ENGINES["text_only"])}


def test_drawing_shrinks_to_the_simplest_request() -> None:
    """A failure that any request shows is reported with the smallest one."""
    found = find(requests(ENGINES["full"]), lambda request: True, settings=QUICK)
    assert found == simple_request(ENGINES["full"])


def test_single_faults_survive_json() -> None:
    """A stored case, NaN and infinities included, runs again with the same bytes."""

    @QUICK
    @given(single_faults(ENGINES["full"]))
    def run(case: Case) -> None:
        again = from_json(to_json(case))
        assert request_of(again).SerializeToString(deterministic=True) == request_of(
            case
        ).SerializeToString(deterministic=True)
        assert again.params == case.params

    run()


def test_too_large_a_window_is_not_tried() -> None:
    """No request is built for a window that costs too much to fill."""
    declared = ENGINES["full"]
    assert long_prompt_possible(declared)
    assert not long_prompt_possible(ENGINES["tokens_only"])
    assert not long_prompt_possible(ENGINES["legacy"])
