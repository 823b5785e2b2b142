"""Guides over the wire: what is advertised, refused, and produced."""

import json
import re
from dataclasses import replace

import grpc
import jsonschema
import pytest

from oe_wire import v1
from reference_engine.engine.config import EngineConfig
from reference_engine.guided.guide import GuideKind
from tests.reference_engine.engine.fakes import ByteTokenizer
from tests.reference_engine.guided.schemas import TREE
from tests.reference_engine.server.running import fake_model, finish, generate_request, serving

INVALID = grpc.StatusCode.INVALID_ARGUMENT
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<n>",
        "content": {"type": "regex", "pattern": "[0-9]{1,3}"},
        "end": "</n>",
    },
}


def asking(seed=1, max_tokens=400, count=1, **guide):
    request = generate_request(guided=v1.GuidedDecoding(**guide))
    request.model = "tiny"
    request.sampling.seed = seed
    request.sampling.temperature = 1.0
    request.sampling.num_sequences = count
    request.stopping.max_tokens = max_tokens
    return request


def choices(*texts):
    return v1.ChoiceConstraint(choices=texts)


def valid_person(text):
    jsonschema.validate(json.loads(text), TREE)
    return True


GUIDES = {
    "json_schema": ({"json_schema": json.dumps(TREE)}, valid_person),
    "regex": ({"regex": "[a-z]{3}[0-9]?"}, lambda text: re.fullmatch("[a-z]{3}[0-9]?", text)),
    "ebnf_grammar": (
        {"ebnf_grammar": 'root ::= ("a" | "b" root "b")'},
        lambda text: re.fullmatch("(b*)a\\1", text),
    ),
    "structural_tag": (
        {"structural_tag": json.dumps(TAG)},
        lambda text: re.fullmatch("<n>[0-9]{1,3}</n>", text),
    ),
    "choice": ({"choice": choices("red", "green")}, lambda text: text in {"red", "green"}),
    "json_object": (
        {"json_object": v1.JsonObjectConstraint()},
        lambda text: isinstance(json.loads(text), dict),
    ),
}


def test_every_mode_is_advertised(engine):
    """Discovery lists the modes that this file shows to work, in both places."""
    listed = engine.call(
        "openengine.v1.OpenEngineDiscovery/GetModelInfo", v1.GetModelInfoRequest(model="tiny")
    ).message.generation.guided_decoding
    assert listed.supported
    names = [v1.GuidedDecodingMode.Name(mode) for mode in listed.modes]
    assert names == [f"GUIDED_DECODING_MODE_{kind.value.upper()}" for kind in GuideKind]
    assert {kind.value for kind in GuideKind} == set(GUIDES)


@pytest.mark.parametrize("kind", GUIDES)
def test_outputs_conform(engine, kind):
    """Outputs that end with STOP are in the language; at least one of several does end."""
    guide, conforms = GUIDES[kind]
    ended = 0
    for seed in range(2):
        outcome = engine.generate(asking(seed=seed, count=3, **guide))
        assert outcome.code is grpc.StatusCode.OK, outcome.details
        for end in outcome.ends():
            if end.reason == v1.FINISH_REASON_STOP:
                ended += 1
                assert end.stop_match.HasField("eos_token_id")
                assert conforms(outcome.text(end.output_index)), outcome.text(end.output_index)
    assert ended


def test_guided_and_free_requests_together(engine):
    """Requests with six guides and without one share the engine, each with its own outcome."""
    calls = {kind: engine.start_generate(asking(**guide)) for kind, (guide, _) in GUIDES.items()}
    free = generate_request()
    free.model = "tiny"
    alone = engine.generate(free)
    for kind, call in calls.items():
        outcome = finish(call)
        (end,) = outcome.ends()
        assert end.reason != v1.FINISH_REASON_STOP or GUIDES[kind][1](outcome.text())
    free.request_id = "the same again"
    assert engine.generate(free).text() == alone.text()


@pytest.mark.parametrize("seed", [None, 5])
def test_a_seed_repeats(engine, seed):
    """The same seed gives the same guided output, alone or with others beside it."""
    guide = {"regex": "[a-z]{20,40}"}
    first = asking(seed=seed or 7, **guide)
    texts = {engine.generate(first).text()}
    others = [engine.start_generate(asking(seed=number, **guide)) for number in range(4)]
    first.request_id += "-again"
    texts.add(engine.generate(first).text())
    assert len(texts) == 1
    assert all(finish(call).code is grpc.StatusCode.OK for call in others)


REFUSED = {
    "no guide": ({}, "guided has no guide"),
    "another backend": ({"regex": "a", "backend": "secret"}, "guided.backend"),
    "no choices": ({"choice": choices()}, "guided.choice"),
    "no JSON": ({"json_schema": "{secret"}, "guided.json_schema is no valid JSON"),
    "no schema": ({"json_schema": '{"type": "secret"}'}, "guided.json_schema does not compile"),
    "unsupported": (
        {"json_schema": '{"secret": {"not": {}}}'},
        "guided.json_schema uses the keyword not",
    ),
    "bad regex": ({"regex": "(secret"}, "guided.regex does not compile"),
    "bad grammar": ({"ebnf_grammar": "secret ::="}, "guided.ebnf_grammar has no rule named root"),
    "bad tag": (
        {"structural_tag": '{"format": {"type": "secret"}}'},
        "guided.structural_tag has an unknown",
    ),
    "too large": ({"regex": "secret" * 50_000}, "guided.regex has 300000 bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(engine, name):
    """A bad guide is refused before acceptance, by its kind and without its content."""
    guide, message = REFUSED[name]
    outcome = engine.generate(asking(**guide))
    assert outcome.code is INVALID
    assert outcome.messages == []
    assert outcome.trailers["openengine-error-code"] == "ERROR_CODE_INVALID_ARGUMENT"
    assert outcome.details.startswith(message)
    assert "secret" not in outcome.details


@pytest.mark.parametrize("backend", ["", "llguidance"])
def test_known_backends(engine, backend):
    """The backend can be named, or left to the engine."""
    outcome = engine.generate(asking(regex="ab?", backend=backend))
    assert outcome.text() in {"a", "ab"}


def test_a_dead_end_is_told_once(engine):
    """A grammar that leads nowhere ends with one error event that blames the request."""
    outcome = engine.generate(asking(ebnf_grammar='root ::= "a" x\nx ::= x "b"'))
    assert outcome.code is grpc.StatusCode.OK
    error = outcome.messages[-1].error
    assert error.code == v1.ERROR_CODE_INVALID_ARGUMENT
    assert error.message.startswith("guided")


class EndlessTokenizer(ByteTokenizer):
    """A vocabulary in which no token ends an output."""

    eos_token_ids = frozenset()


def test_a_model_without_an_end_has_no_guides():
    """Where nothing could end a guided output, no mode is listed, and none is accepted."""
    loaded = replace(fake_model(), tokenizer=EndlessTokenizer())
    with serving(loaded, EngineConfig(num_blocks=16)) as engine:
        info = engine.call(
            "openengine.v1.OpenEngineDiscovery/GetModelInfo", v1.GetModelInfoRequest(model="fake")
        ).message
        assert not info.generation.guided_decoding.supported
        assert not info.generation.guided_decoding.modes
        request = generate_request(guided=v1.GuidedDecoding(regex="a"))
        outcome = engine.generate(request)
        assert outcome.code is INVALID
        assert outcome.trailers["openengine-error-code"] == "ERROR_CODE_UNSUPPORTED_FEATURE"
