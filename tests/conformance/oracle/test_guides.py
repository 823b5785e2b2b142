"""What the oracle makes of guides, sessions, media and adapters."""

from __future__ import annotations

import json
from dataclasses import replace

import grpc
import pytest

from conformance.oracle import Expectation, expect
from conformance.oracle.extras import UNKNOWN_ADAPTER
from conformance.oracle.guides import Quality, quality
from conformance.strategies import simple_request
from conformance.strategies.guides import good_guides, malformed_guides, unoffered_guides
from conformance.wire.declared import Declared
from oe_wire import v1
from tests.conformance.engines import full, legacy

PRECONDITION = {grpc.StatusCode.FAILED_PRECONDITION}


def schema(**parts: object) -> v1.GuidedDecoding:
    return v1.GuidedDecoding(json_schema=json.dumps(parts))


def choice(*choices: str) -> v1.GuidedDecoding:
    return v1.GuidedDecoding(choice=v1.ChoiceConstraint(choices=choices))


def closed(**properties: object) -> v1.GuidedDecoding:
    return schema(
        type="object",
        properties=properties,
        required=list(properties),
        additionalProperties=False,
    )


GOOD = [
    choice("a", "b"),
    v1.GuidedDecoding(regex="(ab|cd)[0-9]{3}"),
    v1.GuidedDecoding(regex="a b_c[a-z0]?"),
    closed(a={"type": "boolean"}),
    closed(a={"enum": ["x"]}, b={"type": "array", "items": {"type": "integer"}, "maxItems": 2}),
    v1.GuidedDecoding(json_object=v1.JsonObjectConstraint()),
]
MALFORMED = [
    choice(),
    v1.GuidedDecoding(regex="(a"),
    v1.GuidedDecoding(regex="[a"),
    v1.GuidedDecoding(regex="a\\"),
    v1.GuidedDecoding(json_schema=""),
    v1.GuidedDecoding(json_schema="nonsense"),
    v1.GuidedDecoding(json_schema="[1]"),
    schema(type="text"),
    closed(a={"type": "text"}),
    v1.GuidedDecoding(ebnf_grammar='root ::= "a'),
    v1.GuidedDecoding(ebnf_grammar='root ::= ("a"'),
    v1.GuidedDecoding(structural_tag="["),
    v1.GuidedDecoding(structural_tag="[]"),
]
UNDECIDED = [
    v1.GuidedDecoding(),
    choice("a", ""),
    choice("a", "a"),
    choice("x" * 1000),
    v1.GuidedDecoding(regex=""),
    v1.GuidedDecoding(regex="a)"),
    v1.GuidedDecoding(regex="[]a]"),
    v1.GuidedDecoding(regex="a**"),
    v1.GuidedDecoding(regex=r"\d+"),
    v1.GuidedDecoding(regex="a{2,1}"),
    v1.GuidedDecoding(regex="(?:a)"),
    v1.GuidedDecoding(json_schema="true"),
    schema(type="object"),
    schema(type="string", pattern="a"),
    closed(a={"$ref": "#"}),
    closed(a={"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 2}),
    v1.GuidedDecoding(ebnf_grammar='root ::= "a" | "b"'),
    v1.GuidedDecoding(ebnf_grammar='root ::= "a" # don\'t stop at "'),
    v1.GuidedDecoding(structural_tag="{}"),
]


@pytest.mark.parametrize("guide", GOOD, ids=str)
def test_good(guide: v1.GuidedDecoding) -> None:
    """What every implementation takes is good."""
    assert quality(guide) is Quality.GOOD


@pytest.mark.parametrize("guide", MALFORMED, ids=str)
def test_malformed(guide: v1.GuidedDecoding) -> None:
    """What no implementation can take is malformed."""
    assert quality(guide) is Quality.MALFORMED


@pytest.mark.parametrize("guide", UNDECIDED, ids=str)
def test_undecided(guide: v1.GuidedDecoding) -> None:
    """What implementations may differ on is left open."""
    assert quality(guide) is Quality.UNDECIDED


def guiding(*modes: str) -> Declared:
    """An engine that offers these modes."""
    declared = full()
    if declared.model is not None:
        offer = declared.model.generation.guided_decoding
        offer.supported = bool(modes)
        del offer.modes[:]
        offer.modes.extend(
            v1.GuidedDecodingMode.Value(f"GUIDED_DECODING_MODE_{mode}") for mode in modes
        )
    return declared


def guided(guide: v1.GuidedDecoding, declared: Declared, **stopping: int) -> Expectation:
    request = simple_request(declared)
    request.guided.CopyFrom(guide)
    for name, value in stopping.items():
        setattr(request.stopping, name, value)
    return expect(request, (), declared)


ALL = guiding("CHOICE", "REGEX", "JSON_SCHEMA", "JSON_OBJECT", "EBNF_GRAMMAR", "STRUCTURAL_TAG")


def test_offered_modes_decide_first() -> None:
    """A guide of another mode is refused for GEN-023, however good it is."""
    assert guided(GOOD[0], guiding("REGEX")).only("OE-CORE-GEN-023")
    assert guided(GOOD[1], guiding("REGEX")).accepted
    assert guided(MALFORMED[1], guiding("REGEX")).only("OE-CORE-GEN-024")
    assert guided(v1.GuidedDecoding(), ALL).only("OE-CORE-GEN-023")


def test_what_keeps_a_guided_output_from_ending_is_undecided() -> None:
    """A least length or ignored end tokens contradict a guide that comes to its end."""
    assert guided(GOOD[0], ALL).accepted
    for contradiction in ({"ignore_eos": True}, {"min_tokens": 1}):
        expectation = guided(GOOD[0], ALL, **contradiction)
        assert not expectation.accepted
        assert not expectation.refused


def test_the_suites_own_guides_are_what_they_are_called() -> None:
    """Good guides are not refused, malformed ones are, and unoffered ones for their mode."""
    for guide in good_guides(ALL):
        assert not guided(guide, ALL).refused
    for guide in malformed_guides(ALL):
        assert guided(guide, ALL).only("OE-CORE-GEN-024")
    assert unoffered_guides(ALL) == []
    assert {guide.WhichOneof("guide") for guide in unoffered_guides(guiding("REGEX"))} == {
        *("choice", "json_schema", "json_object", "ebnf_grammar", "structural_tag")
    }


def test_sessions_are_for_the_decode_side() -> None:
    """Without kv_handoff, and on a prefill engine, a session is a mismatch; on a decode engine a
    plain request is.
    """
    declared = full()
    with_session = simple_request(declared)
    with_session.kv.session.session_id = "s"
    assert expect(with_session, (), declared).broken["OE-CORE-GEN-032"] == PRECONDITION
    if declared.engine_scope is not None:
        declared.engine_scope.profiles.add(name="kv_handoff", major=1)
    assert not expect(with_session, (), declared).refused
    for role, mismatch in (
        (v1.ENGINE_ROLE_PREFILL, with_session),
        (v1.ENGINE_ROLE_DECODE, simple_request(declared)),
    ):
        info = v1.EngineInfo(engine_role=role)
        other = replace(declared, engine_info=info)
        assert expect(mismatch, (), other).only("OE-CORE-GEN-032")
    old = replace(legacy(), server_info=v1.ServerInfo(engine_role=v1.ENGINE_ROLE_AGGREGATED))
    assert grpc.StatusCode.UNIMPLEMENTED in expect(with_session, (), old).broken["OE-CORE-GEN-032"]


def test_unknown_adapters_are_not_found_where_there_are_adapters() -> None:
    """With the profile a name that nobody uses is NOT_FOUND, and other names are undecided."""
    declared = full()
    request = simple_request(declared)
    request.lora_name = UNKNOWN_ADAPTER + "-7"
    disabled = {grpc.StatusCode.INVALID_ARGUMENT, *PRECONDITION}
    assert expect(request, (), declared).broken["OE-CORE-GEN-028"] == disabled
    if declared.engine_scope is not None and declared.model is not None:
        declared.engine_scope.profiles.add(name="adapters", major=1)
        declared.model.supports_lora = True
    missing = {grpc.StatusCode.NOT_FOUND}
    assert expect(request, (), declared).broken["OE-CORE-GEN-028"] == missing
    request.lora_name = "loaded"
    assert not expect(request, (), declared).refused


def test_candidates_of_ids_beyond_any_vocabulary_are_refused() -> None:
    """An id that no vocabulary reaches breaks GEN-025, one that may exist decides nothing."""
    declared = full()
    request = simple_request(declared)
    request.response.return_output_logprobs = True
    request.response.output_candidates.token_ids.ids.append(2**32 - 1)
    assert expect(request, (), declared).only("OE-CORE-GEN-025")
    request.response.output_candidates.token_ids.ids[:] = [2**29]
    assert not expect(request, (), declared).refused
