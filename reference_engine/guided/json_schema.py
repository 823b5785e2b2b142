"""JSON guides: options of llguidance's compiler that no caller can change, and early refusals."""

import json
from collections.abc import Iterator
from typing import Any

from llguidance import LLMatcher

from reference_engine.errors import GuideError
from reference_engine.guided.json_format import restrict_format
from reference_engine.guided.lark import MAX_LITERAL
from reference_engine.guided.regex import check_counts

ANY_OBJECT = '{"type":"object"}'

# A model that is in love with blanks must still get to the end: 24 is an indent of six levels.
OPTIONS: dict[str, Any] = {
    "item_separator": ",",
    "key_separator": ":",
    "whitespace_flexible": True,
    "whitespace_pattern": r"[ \n\t]{1,24}",
    "coerce_one_of": False,
    "lenient": False,
}
_OVERRIDE = "x-guidance"

MAX_DEPTH = 128
# llguidance recurses along $ref; 4,000 in a chain overflow its stack.
MAX_REFERENCES = 400
# States of a lexer: 1,000,003 take 6 s to compile.
MAX_MULTIPLE = 10_000
# Patterns that must hold together: 60 of them take minutes to compile.
MAX_PATTERNS = 4

# Keywords whose value is data, in which nothing is a schema.
_DATA = frozenset({"const", "enum", "default", "examples"})
# Keywords whose value maps names of the caller to schemas.
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
# Keywords that say nothing with this value, or nothing about what is valid at all.
_IDLE = {"uniqueItems": False, "unevaluatedItems": True, "unevaluatedProperties": True}
_NOTES = frozenset({"contentEncoding", "contentMediaType", "contentSchema"})

UNSUPPORTED = frozenset(
    {
        "$dynamicAnchor",
        "$dynamicRef",
        "$recursiveAnchor",
        "$recursiveRef",
        "contains",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "maxContains",
        "minContains",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
"""Standard keywords that restrict and cannot be enforced here."""


def load_json(text: str) -> Any:
    """A JSON value. GuideError when it is none, or is nested too deep to be read."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise GuideError("is no valid JSON text") from error


def _no_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are no JSON")


def schema_grammar(schema: object) -> str:
    """A schema in llguidance's form; the object is used up. GuideError as `checked`."""
    try:
        return LLMatcher.grammar_from_json_schema(json.dumps(checked(schema)))
    except ValueError as error:
        raise GuideError("is no JSON Schema that can be enforced") from error


def checked(schema: object) -> dict[str, Any]:
    """The schema, changed in place to what is enforced exactly, with our options.

    GuideError names the keyword that can't be enforced.
    """
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise GuideError("is no JSON Schema, expected an object or true")
    declared = schema.get("$schema")
    draft = declared if isinstance(declared, str) else ""
    if "draft-03" in draft:
        raise GuideError("is of draft 3, expected draft 4 or later")
    references: set[str] = set()
    for part in _parts(schema, 0):
        _check(part, booleans="draft-04" in draft)
        references.add(str(part.get("$ref")))
        if len(references) > MAX_REFERENCES:
            raise GuideError(f"has more than {MAX_REFERENCES} different $ref")
        if "$ref" in part and "$id" in part and part is not schema:
            raise GuideError("has $ref beside $id, which drafts read in different ways")
    return {**schema, _OVERRIDE: OPTIONS}


def _check(part: dict[str, Any], *, booleans: bool) -> None:
    """Refuse what can't be enforced in one object, and drop what has no effect."""
    for keyword in _NOTES & part.keys():
        del part[keyword]
    for keyword, value in _IDLE.items():
        if part.get(keyword) is value:
            del part[keyword]
    for keyword in sorted(UNSUPPORTED & part.keys()):
        raise GuideError(f"uses the keyword {keyword}, which is not supported")
    for keyword in ("exclusiveMinimum", "exclusiveMaximum"):
        if isinstance(part.get(keyword), bool) and not booleans:
            raise GuideError(f"has a boolean {keyword}, expected a number")
    multiple = part.get("multipleOf")
    if isinstance(multiple, int | float) and multiple > MAX_MULTIPLE:
        raise GuideError(f"has a multipleOf above {MAX_MULTIPLE}")
    for value in (part.get("const"), *_listed(part, "enum"), *_named(part, "properties")):
        if len(json.dumps(value)) > MAX_LITERAL:
            raise GuideError(f"has a value of more than {MAX_LITERAL} characters")
    together = sum("pattern" in one for one in _parts(part.get("allOf"), 0))
    if together > MAX_PATTERNS:
        raise GuideError(f"has more than {MAX_PATTERNS} patterns in one allOf")
    pattern = part.get("pattern")
    if isinstance(pattern, str):
        check_counts(pattern)
    for pattern in part.get("patternProperties") or ():
        check_counts(str(pattern))
    restrict_format(part)


def _listed(part: dict[str, Any], keyword: str) -> list[Any]:
    value = part.get(keyword)
    return value if isinstance(value, list) else []


def _named(part: dict[str, Any], keyword: str) -> list[str]:
    value = part.get(keyword)
    return list(value) if isinstance(value, dict) else []


def _parts(schema: object, depth: int) -> Iterator[dict[str, Any]]:
    """Every object of the schema that can be a schema itself; each may be changed when it comes."""
    if depth > MAX_DEPTH:
        raise GuideError(f"is nested deeper than {MAX_DEPTH}")
    if isinstance(schema, list):
        for item in schema:
            yield from _parts(item, depth + 1)
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword, value in schema.items():
        if keyword in _NAMED and isinstance(value, dict):
            for one in value.values():
                yield from _parts(one, depth + 1)
        elif keyword not in _DATA:
            yield from _parts(value, depth + 1)
