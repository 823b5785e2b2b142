"""Whether a text belongs to the language of a guide, decided without the engine's own grammars."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema
from referencing import Registry
from referencing.exceptions import Unresolvable

from oe_wire import v1

# Nothing general reads the EBNF of all implementations, so these grammars are known by their text.
YES_OR_NO = 'root ::= "yes" | "no"'
NESTED = 'root ::= "(" root ")" | "x"'
# Longer texts against a regular expression with nested repeats could take Python very long.
MAX_MATCHED = 4096


def _nested(text: str) -> bool:
    depth = text.count("(")
    return text == "(" * depth + "x" + ")" * depth


GRAMMARS: Mapping[str, Callable[[str], bool]] = {
    YES_OR_NO: lambda text: text in {"yes", "no"},
    NESTED: _nested,
}


def conforms(guided: v1.GuidedDecoding, text: str) -> bool | None:
    """Whether `text`, an output that ended by itself, is one that the guide allows.

    None where this module cannot tell: an unknown grammar, a regular expression that Python
    reads otherwise or not at all, a structural tag in another form than `tag`.
    """
    match guided.WhichOneof("guide"):
        case "json_schema":
            return _valid(text, guided.json_schema)
        case "json_object":
            return isinstance(_value(text), dict)
        case "choice":
            return text in guided.choice.choices
        case "regex":
            return _matches(text, guided.regex)
        case "ebnf_grammar":
            member = GRAMMARS.get(guided.ebnf_grammar)
            return None if member is None else member(text)
        case "structural_tag":
            return _tagged(text, guided.structural_tag)
        case _:
            return None


_NO_JSON = object()


def _value(text: str) -> Any:
    """The JSON value of a text, strictly: no NaN, nothing before or after but white space."""

    def refuse(_: str) -> Any:
        raise ValueError

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return _NO_JSON


def _valid(text: str, source: str) -> bool | None:
    schema, value = _value(source), _value(text)
    if not isinstance(schema, (dict, bool)):
        return None
    if value is _NO_JSON:
        return False
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
        # With an empty registry nothing is fetched for a reference to elsewhere.
        return jsonschema.Draft202012Validator(schema, registry=Registry()).is_valid(value)
    except (jsonschema.SchemaError, Unresolvable, re.error):
        return None


def _matches(text: str, pattern: str) -> bool | None:
    if len(text) > MAX_MATCHED:
        return None
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:
        return None


def _tagged(text: str, source: str) -> bool | None:
    """Only a single tag with JSON inside: what surrounds triggered tags may be anything."""
    outer = _value(source)
    tag = outer.get("format") if isinstance(outer, dict) else None
    content = tag.get("content") if isinstance(tag, dict) else None
    if not isinstance(tag, dict) or not isinstance(content, dict):
        return None
    begin, end, schema = tag.get("begin"), tag.get("end"), content.get("json_schema")
    single = tag.get("type") == "tag" and content.get("type") == "json_schema"
    if not single or not isinstance(begin, str) or not isinstance(end, str):
        return None
    inner = text.removeprefix(begin).removesuffix(end)
    if len(inner) != len(text) - len(begin) - len(end):
        return False
    return _valid(inner, json.dumps(schema))


def texts_of(guided: v1.GuidedDecoding) -> Iterator[str]:
    """The strings out of which every conforming output is made, where the guide lists them."""
    if guided.WhichOneof("guide") == "choice":
        yield from guided.choice.choices
