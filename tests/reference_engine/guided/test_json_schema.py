"""JSON guides: every output validates, and what can't be enforced is refused."""

import json
import random

import jsonschema
import pytest

from reference_engine.guided.guide import GuideKind
from reference_engine.guided.json_schema import OPTIONS
from tests.reference_engine.guided.languages import language, refusal
from tests.reference_engine.guided.schemas import MALFORMED, SUPPORTED, UNSUPPORTED


def validator(schema):
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


@pytest.mark.parametrize("name", SUPPORTED)
def test_random_outputs_validate(name):
    """The independent validator takes every output that came to its end."""
    schema = SUPPORTED[name]
    compiled = language(GuideKind.JSON_SCHEMA, json.dumps(schema))
    check, rng = validator(schema), random.Random(name)
    outputs = [compiled.random_output(rng) for _ in range(8)]
    whole = [output for output in outputs if output is not None]
    assert whole
    for output in whole:
        check.validate(json.loads(output))


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("required", '{"street": "x", "number": 3}', '{"street": "x"}'),
        ("required", '{"street":"x","number":3}', '{"street":"x","number":0}'),
        ("several types", "null", "true"),
        ("multipleOf", "-15", "16"),
        ("pattern anywhere", '"ab1c"', '"ab"'),
        ("closed tuple", '[1, "b"]', '[1, "b", 2]'),
        ("recursive object", '{"value":1,"next":{"value":2}}', '{"value":1,"next":{}}'),
        ("format date", '"2026-02-28"', '"2026-02-30"'),
        ("format time", '"23:59:59Z"', '"23:59:60Z"'),
        ("format and pattern", '"2026-12-31"', '"1999-12-31"'),
        ("oneOf by a constant", '{"kind":"dog","dog":1}', '{"kind":"dog","cat":1}'),
        ("enum with type", '"b"', "1"),
        ("number", "-1.5e3", "01"),
        ("string", '"é\\n"', '"a\nb"'),
        ("draft 4 exclusive", "4", "3"),
    ],
)
def test_acceptance(name, inside, outside):
    """One valid and one invalid text of a schema."""
    compiled = language(GuideKind.JSON_SCHEMA, json.dumps(SUPPORTED[name]))
    assert compiled.accepts(inside)
    assert not compiled.accepts(outside)


def test_json_object():
    """Any object, and nothing but an object."""
    compiled = language(GuideKind.JSON_OBJECT)
    rng = random.Random(11)
    whole = [one for one in (compiled.random_output(rng) for _ in range(8)) if one is not None]
    assert whole
    assert all(isinstance(json.loads(one), dict) for one in whole)
    assert compiled.accepts('{"a": [1, 2.5e3, null, "é"], "b": {}}')
    assert [
        text for text in ("[]", "1", "", " {}", "{} ", "{", '{"a"}') if compiled.accepts(text)
    ] == []


def test_blanks_are_bounded():
    """A model can indent, but not write blanks for ever."""
    compiled = language(GuideKind.JSON_OBJECT)
    assert compiled.accepts('{\n    "a" : [\n        1\n    ]\n}')
    assert compiled.accepts("{" + " " * 24 + "}")
    assert not compiled.accepts("{" + " " * 25 + "}")


@pytest.mark.parametrize("keyword", UNSUPPORTED)
@pytest.mark.parametrize("inside", [False, True])
def test_unsupported_keywords_are_named(keyword, inside):
    """A keyword that restricts and can't be enforced is refused by name, at any depth."""
    schema = UNSUPPORTED[keyword]
    if inside:
        schema = {"type": "array", "items": {"properties": {"secret": {"anyOf": [schema]}}}}
    message = refusal(GuideKind.JSON_SCHEMA, json.dumps(schema))
    assert f"keyword {keyword}," in message or (keyword == "if" and "keyword if" in message)
    assert "secret" not in message


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_schemas_are_refused(text):
    """What is no schema, or none that can be enforced, is refused without being repeated."""
    message = refusal(GuideKind.JSON_SCHEMA, text)
    assert "secret" not in message
    assert "passwd" not in message


def test_options_cannot_be_changed():
    """A schema's own compiler options are not used: no foreign separators, nothing lenient."""
    schema = {"x-guidance": {"item_separator": ";", "whitespace_flexible": False}, "type": "array"}
    compiled = language(GuideKind.JSON_SCHEMA, json.dumps(schema))
    assert compiled.accepts("[1, 2]")
    assert not compiled.accepts("[1;2]")
    assert OPTIONS["lenient"] is False
