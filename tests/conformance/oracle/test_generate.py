"""The oracle on hand-written requests at the bounds of each rule."""

from __future__ import annotations

import math
from collections.abc import Callable

import grpc
import pytest

from conformance.oracle import Expectation, expect
from conformance.wire.declared import Declared
from oe_wire import v1
from tests.conformance.engines import ENGINES, full, legacy, text_only, tokens_only
from tests.conformance.fake_rules import ALIAS, ID_BYTES, MODEL, OUTPUT, SEQUENCES, STOPS, WINDOW

Change = Callable[[v1.GenerateRequest], object]


def simple() -> v1.GenerateRequest:
    return v1.GenerateRequest(
        request_id="id", model=MODEL, prompt="a", stopping=v1.StoppingOptions(max_tokens=1)
    )


def expected(change: Change, declared: Declared | None = None) -> Expectation:
    request = simple()
    change(request)
    return expect(request, (), declared or full())


def sampling(**fields: float) -> Change:
    return lambda r: r.sampling.CopyFrom(v1.SamplingParams(**fields))  # type: ignore[arg-type]


def stopping(**fields: int) -> Change:
    return lambda r: r.stopping.CopyFrom(v1.StoppingOptions(**fields))  # type: ignore[arg-type]


def ids(*tokens: int) -> Change:
    return lambda r: r.token_ids.CopyFrom(v1.TokenIds(ids=tokens))


def stops(*conditions: v1.StopCondition) -> Change:
    return lambda r: r.stopping.conditions.extend(conditions)


def set_field(name: str, value: object) -> Change:
    return lambda r: setattr(r, name, value)


def text(value: str) -> v1.StopCondition:
    return v1.StopCondition(stop_text=value)


LEGAL: dict[str, Change] = {
    "simplest": lambda r: None,
    "id at the limit": set_field("request_id", "é" * (ID_BYTES // 2)),
    "alias": set_field("model", ALIAS),
    "tokens": ids(10, 11, 10),
    "one sequence": sampling(num_sequences=1),
    "most sequences": sampling(num_sequences=SEQUENCES),
    "greedy": sampling(temperature=0.0),
    "hot": sampling(temperature=2.0),
    "top_p one": sampling(top_p=1.0),
    "top_k off": sampling(top_k=-1),
    "top_k zero": sampling(top_k=0),
    "min_p zero": sampling(min_p=0.0),
    "min_p one": sampling(min_p=1.0),
    "no penalty": sampling(repetition_penalty=1.0, frequency_penalty=0.0, presence_penalty=-2.0),
    "seed zero": sampling(seed=0),
    "engine's own length": stopping(),
    "least is most": stopping(max_tokens=5, min_tokens=5),
    "most output": stopping(max_tokens=OUTPUT),
    "most stops": stops(*[text("e")] * STOPS),
    "stop token": stops(v1.StopCondition(stop_token_id=12)),
    "explicit default stops": stopping(ignore_eos=False, include_stop_in_output=False),
    "explicit default cache": lambda r: setattr(r.kv, "bypass_prefix_cache", False),
    "stop in output": lambda r: setattr(r.stopping, "include_stop_in_output", True),
    "unknown extra": lambda r: r.extra.update({"x": 1}),
    "logprobs": lambda r: r.response.CopyFrom(
        v1.ResponseOptions(
            return_output_logprobs=True, output_candidates=v1.CandidateTokenSelection(top_n=5)
        )
    ),
}

ILLEGAL: list[tuple[str, Change]] = [
    ("GEN-001", set_field("request_id", "")),
    ("GEN-002", set_field("request_id", "x" * (ID_BYTES + 1))),
    ("GEN-002", set_field("request_id", "é" * (ID_BYTES // 2) + "x")),
    ("GEN-005", set_field("model", "")),
    ("GEN-005", set_field("model", "other")),
    ("GEN-006", lambda r: r.ClearField("prompt")),
    ("GEN-007", ids()),
    ("GEN-010", ids(*[10] * (WINDOW + 1))),
    ("GEN-012", sampling(num_sequences=0)),
    ("GEN-012", sampling(num_sequences=SEQUENCES + 1)),
    ("GEN-012", sampling(num_sequences=2**32 - 1)),
    ("GEN-013", stopping(max_tokens=0)),
    ("GEN-014", stopping(max_tokens=4, min_tokens=5)),
    ("GEN-015", stopping(max_tokens=OUTPUT + 1)),
    ("GEN-015", stopping(max_tokens=2**32 - 1)),
    *[("GEN-016", sampling(temperature=t)) for t in (-1.0, math.nan, math.inf, -math.inf)],
    *[("GEN-017", sampling(top_p=p)) for p in (0.0, -0.0, -0.1, 1.1, math.nan, math.inf)],
    *[("GEN-018", sampling(top_k=k)) for k in (-2, -(2**31))],
    *[("GEN-019", sampling(min_p=p)) for p in (-0.1, 1.1, math.nan, -math.inf)],
    *[("GEN-020", sampling(repetition_penalty=p)) for p in (0.0, -1.0, math.nan, math.inf)],
    *[("GEN-020", sampling(frequency_penalty=p)) for p in (math.nan, math.inf)],
    *[("GEN-020", sampling(presence_penalty=p)) for p in (math.nan, -math.inf)],
    ("GEN-021", stops(v1.StopCondition())),
    ("GEN-021", stops(text("e"), text(""))),
    ("GEN-022", stops(*[text("e")] * (STOPS + 1))),
    ("GEN-023", lambda r: r.guided.CopyFrom(v1.GuidedDecoding())),
    ("GEN-023", lambda r: r.guided.CopyFrom(v1.GuidedDecoding(regex="a"))),
    ("GEN-027", lambda r: r.media.append(v1.MediaItem(url="http://localhost/x"))),
    ("GEN-028", set_field("lora_name", "adapter")),
    ("GEN-030", lambda r: setattr(r.kv, "bypass_prefix_cache", True)),
    ("GEN-030", lambda r: setattr(r.kv, "cache_salt", "s")),
    ("GEN-032", lambda r: r.kv.session.SetInParent()),
]

UNDECIDED: dict[str, Change] = {
    "full window": ids(*[10] * WINDOW),
    "strange tokens": ids(4_000_000_000),
    "empty prompt": set_field("prompt", ""),
    "lukewarm": sampling(temperature=1e-9),
    "boiling": sampling(temperature=1e30),
    "nearly one": sampling(top_p=1 + 1e-12),
    "large top_k": sampling(top_k=2**31 - 1),
    "large penalty": sampling(frequency_penalty=1e9),
    "prompt start": lambda r: setattr(r.response, "prompt_logprob_start", 7),
    "unprintable id": set_field("request_id", "a\nb"),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_request_is_accepted(name: str) -> None:
    """What lies within every declared limit is accepted."""
    assert expected(LEGAL[name]).describe() == "accepted"


@pytest.mark.parametrize(("row", "change"), ILLEGAL)
def test_illegal_request_breaks_one_rule(row: str, change: Change) -> None:
    """What lies beyond one limit is refused for that rule alone, with the statuses it names."""
    expectation = expected(change)
    rule = f"OE-CORE-{row}"
    assert expectation.only(rule), expectation.describe()
    assert expectation.refused
    assert not expectation.accepted
    assert grpc.StatusCode.OK not in expectation.broken[rule]


@pytest.mark.parametrize("name", UNDECIDED)
def test_undecided_request_is_neither(name: str) -> None:
    """What no row and no declaration decides is neither accepted nor refused."""
    expectation = expected(UNDECIDED[name])
    assert not expectation.accepted
    assert not expectation.refused


def test_statuses_follow_the_row() -> None:
    """An empty model name is INVALID_ARGUMENT, one that is not served NOT_FOUND."""
    empty, other = expected(set_field("model", "")), expected(set_field("model", "other"))
    assert empty.broken["OE-CORE-GEN-005"] == {grpc.StatusCode.INVALID_ARGUMENT}
    assert other.broken["OE-CORE-GEN-005"] == {grpc.StatusCode.NOT_FOUND}
    adapter = expected(set_field("lora_name", "adapter")).broken["OE-CORE-GEN-028"]
    invalid, disabled = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION
    assert adapter == {invalid, disabled}


def test_two_faults_fix_no_status() -> None:
    """A request that breaks two rules is refused, but neither rule alone says how."""

    def both(request: v1.GenerateRequest) -> None:
        sampling(temperature=-1.0)(request)
        request.request_id = ""

    expectation = expected(both)
    assert set(expectation.broken) == {"OE-CORE-GEN-001", "OE-CORE-GEN-016"}
    assert expectation.refused
    assert not expectation.only("OE-CORE-GEN-001")


def test_output_beyond_the_window_allows_both() -> None:
    """Prompt plus max_tokens above the window may be accepted or refused."""

    def change(request: v1.GenerateRequest) -> None:
        ids(*[10] * (WINDOW - 4))(request)
        request.stopping.max_tokens = 5

    expectation = expected(change)
    assert set(expectation.either) == {"OE-CORE-GEN-011"}
    assert not expectation.accepted
    assert not expectation.refused
    request = simple()
    change(request)
    request.stopping.max_tokens = 4
    assert expect(request, (), full()).accepted


def test_candidates_without_logprobs_allow_both() -> None:
    """Candidates without the matching flag SHOULD be refused, so both outcomes are right."""
    selection = v1.CandidateTokenSelection(top_n=1)
    options = v1.ResponseOptions(output_candidates=selection)
    expectation = expected(lambda r: r.response.CopyFrom(options))
    assert set(expectation.either) == {"OE-CORE-GEN-026"}


def test_zero_max_tokens_where_reported_is_accepted() -> None:
    """accepts_zero_max_tokens makes zero legal."""
    declared = full()
    if declared.capabilities is not None:
        declared.capabilities.core.accepts_zero_max_tokens = True
    assert expected(stopping(max_tokens=0), declared).accepted


def test_disabled_input_is_refused() -> None:
    """The kind of input that is reported false breaks GEN-008."""
    assert expected(lambda r: None, tokens_only()).only("OE-CORE-GEN-008")
    assert expected(ids(10), text_only()).only("OE-CORE-GEN-008")
    assert expected(lambda r: None, text_only()).accepted


@pytest.mark.parametrize("row", ["GEN-002", "GEN-013", "GEN-015", "GEN-022", "GEN-028", "GEN-030"])
def test_rows_that_do_not_bind_legacy_engines_decide_nothing_there(row: str) -> None:
    """On a v0.1.0 engine the rows of core 1.0 alone refuse nothing."""
    for illegal, change in ILLEGAL:
        if illegal == row:
            assert f"OE-CORE-{row}" not in expected(change, legacy()).broken


def test_legacy_engine_that_reports_nothing_takes_the_simplest_request() -> None:
    """Without any report text is taken for legal, and nothing else about the input."""
    assert expected(lambda r: None, legacy()).accepted
    assert not expected(ids(10), legacy()).accepted


def test_excluded_combination_is_refused() -> None:
    """A request that uses every feature of an incompatible combination breaks CAP-019."""
    declared = ENGINES["excluding"]

    def change(request: v1.GenerateRequest) -> None:
        request.response.return_prompt_logprobs = True

    assert expected(change, declared).only("OE-CORE-CAP-019")
    assert expected(sampling(num_sequences=2), declared).accepted
    assert expected(change).accepted


def test_routing_metadata_is_undecided() -> None:
    """Keys of the engine's own are outside the oracle; foreign keys change nothing."""
    assert not expect(simple(), (("openengine-priority", "x"),), full()).accepted
    assert expect(simple(), (("x-trace", "1"),), full()).accepted


def test_other_served_models_are_undecided() -> None:
    """A name that the engine lists without describing it may or may not be served."""
    declared = full()
    if declared.engine_info is not None:
        declared.engine_info.supported_models.append("second")
    expectation = expected(set_field("model", "second"), declared)
    assert not expectation.accepted
    assert not expectation.refused


def test_prefill_role_decides_nothing() -> None:
    """An engine that only prefills serves no plain request, so nothing is expected of one."""
    declared = full()
    if declared.engine_info is not None:
        declared.engine_info.engine_role = v1.ENGINE_ROLE_PREFILL
    assert not expected(lambda r: None, declared).accepted
