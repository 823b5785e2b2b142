"""Guides that would stall or crash the compiler are refused at once."""

import json

import pytest

from reference_engine.guided.guide import GuideKind
from tests.reference_engine.guided.languages import guides, language, refusal, tokenizer


def chain(count):
    """Schemas that refer to each other in a row."""
    links = {f"d{n}": {"items": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(count)}
    return {"$defs": {**links, f"d{count}": {}}, "$ref": "#/$defs/d0"}


HOSTILE = {
    "references": (GuideKind.JSON_SCHEMA, json.dumps(chain(4000))),
    "patterns": (
        GuideKind.JSON_SCHEMA,
        json.dumps({"allOf": [{"pattern": f"a{{{n}}}.*b"} for n in range(60)]}),
    ),
    "multiple": (GuideKind.JSON_SCHEMA, '{"type": "integer", "multipleOf": 1000003}'),
    "constant": (GuideKind.JSON_SCHEMA, json.dumps({"const": "x" * 200_000})),
    "one of many": (GuideKind.JSON_SCHEMA, json.dumps({"enum": ["a", "x" * 200_000]})),
    "name": (GuideKind.JSON_SCHEMA, json.dumps({"properties": {"x" * 200_000: {}}})),
    "depth": (GuideKind.JSON_SCHEMA, '{"items": ' * 500 + "{}" + "}" * 500),
    "rules": (
        GuideKind.EBNF_GRAMMAR,
        "root ::= r0\n" + "\n".join(f"r{n} ::= r{n + 1}" for n in range(3000)) + '\nr3000 ::= "a"',
    ),
    "size of EBNF": (GuideKind.EBNF_GRAMMAR, "#" * 70_000),
    "text": (
        GuideKind.STRUCTURAL_TAG,
        json.dumps({"format": {"type": "const_string", "value": "x" * 200_000}}),
    ),
    "counts": (GuideKind.REGEX, "(a{1000}){1000}"),
    "groups": (GuideKind.REGEX, "(" * 5000 + "a" + ")" * 5000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_guides_are_refused(name):
    """Each of these took seconds, minutes or the whole process before it was refused."""
    assert refusal(*HOSTILE[name])


def test_large_but_sound_guides_compile():
    """The limits leave room: long chains of references, many properties, many choices."""
    assert language(GuideKind.JSON_SCHEMA, json.dumps(chain(390))).accepts("[[]]")
    properties = {f"p{n}": {"type": "string"} for n in range(1000)}
    many = language(GuideKind.JSON_SCHEMA, json.dumps({"type": "object", "properties": properties}))
    assert many.accepts('{"p3": "x", "p999": "y"}')
    choices = tuple(f"choice number {n}" for n in range(5000))
    assert language(GuideKind.CHOICE, choices=choices).accepts("choice number 4999")


def test_a_guide_is_compiled_once():
    """The same guide gives the same grammar from the cache, and its matchers are apart."""
    first = language(GuideKind.REGEX, "[ab]{9}").grammar
    assert language(GuideKind.REGEX, "[ab]{9}").grammar == first
    one, other = guides().matcher(first), guides().matcher(first)
    assert all(map(one.advance, tokenizer().encode("ababababa")))
    assert one.complete
    assert not other.complete
