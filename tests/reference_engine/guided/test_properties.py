"""Random draws under random guides, by Hypothesis."""

import json
import re

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.guided.guide import GuideKind
from tests.reference_engine.guided.languages import language
from tests.reference_engine.guided.schemas import SUPPORTED

letters = st.sampled_from("abé0.-")
atoms = st.one_of(
    st.text(letters, min_size=1, max_size=3).map(re.escape),
    st.sampled_from(["[a-c]", "[^a]", r"\d", r"\w", "."]),
)


@st.composite
def patterns(draw, depth=2):
    """Small regexes."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        part = draw(patterns(depth - 1)) if depth and draw(st.booleans()) else draw(atoms)
        parts.append(f"(?:{part})" + draw(st.sampled_from(["", "?", "{1,2}", "{0,3}"])))
    return draw(st.sampled_from(["", "|"])).join(parts)


@settings(max_examples=40, deadline=None)
@given(pattern=patterns(), rng=st.randoms(use_true_random=False))
def test_regex(pattern, rng):
    """Every token that a mask allows is taken, and a whole output matches the regex."""
    output = language(GuideKind.REGEX, pattern).random_output(rng, most=60)
    assert output is None or re.fullmatch(pattern, output)


@settings(max_examples=40, deadline=None)
@given(
    choices=st.lists(st.text(max_size=12), min_size=1, max_size=6),
    rng=st.randoms(use_true_random=False),
)
def test_choice(choices, rng):
    """Whatever the texts, the output is one of them."""
    assert language(GuideKind.CHOICE, choices=tuple(choices)).random_output(rng) in choices


scalars = st.sampled_from(
    [
        SUPPORTED[name]
        for name in ("integer", "boolean", "maxLength", "format date", "enum of all kinds")
    ]
)
names = st.text('abc_é "\\', min_size=1, max_size=4)


def nested(inner):
    """Arrays, objects and unions of other schemas."""
    objects = st.dictionaries(names, inner, max_size=3).flatmap(
        lambda properties: st.sampled_from(
            [
                {
                    "type": "object",
                    "properties": properties,
                    "required": required,
                    "additionalProperties": False,
                }
                for required in ([], sorted(properties))
            ]
        )
    )
    arrays = st.builds(
        lambda items, least: {
            "type": "array",
            "items": items,
            "minItems": least,
            "maxItems": least + 1,
        },
        inner,
        st.integers(0, 2),
    )
    return (
        objects
        | arrays
        | st.lists(inner, min_size=1, max_size=2).map(lambda any_of: {"anyOf": any_of})
    )


@settings(max_examples=50, deadline=None)
@given(schema=st.recursive(scalars, nested, max_leaves=5), rng=st.randoms(use_true_random=False))
def test_json_schema(schema, rng):
    """Every token that a mask allows is taken, and a whole output validates."""
    output = language(GuideKind.JSON_SCHEMA, json.dumps(schema)).random_output(rng, most=250)
    if output is not None:
        check = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
        check.validate(json.loads(output))
