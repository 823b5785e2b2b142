"""Whether a guide must be taken, must be refused, or lies where engines may differ.

Judged by form alone: what counts as good here compiles in every implementation in use, and what
counts as malformed is so in every notation that the field may hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from typing import Any

from conformance.oracle.expectation import Reason, broken, unknown
from conformance.wire.declared import Declared
from oe_wire import v1


class Quality(Enum):
    """What the text of a guide decides."""

    GOOD = auto()
    MALFORMED = auto()
    UNDECIDED = auto()


# Guides beyond these sizes may meet limits that engines do not report.
MAX_TEXT = 512
MAX_CHOICES = 32

# The parts of a regular expression that mean the same everywhere.
_LITERAL = r"[A-Za-z0-9 _]"
_CLASS = r"\[(?:[A-Za-z0-9](?:-[A-Za-z0-9])?)+\]"
_REPEAT = r"[?*+]|\{\d{1,2}(?:,\d{1,2})?\}"
_PART = re.compile(rf"(?P<one>{_LITERAL}|{_CLASS}|\))|(?P<repeat>{_REPEAT})|(?P<other>\(|\|)")

# Characters with which some EBNF notation begins comments, literals or regular expressions of
# its own; without them a quote and a bracket mean the same in all.
_OTHER_EBNF = frozenset("#/'\\[{<")

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_OBJECT_KEYS = frozenset({"type", "properties", "required", "additionalProperties"})
_ARRAY_KEYS = frozenset({"type", "items", "minItems", "maxItems"})


def guided_reasons(request: v1.GenerateRequest, declared: Declared) -> Iterator[Reason]:
    """GEN-023 and GEN-024 for the guide of a request that has `guided`."""
    guided = request.guided
    kind = guided.WhichOneof("guide")
    if kind is None or mode_of(kind) not in offered_modes(declared):
        yield broken("GEN-023")
        return
    match quality(guided):
        case Quality.MALFORMED:
            yield broken("GEN-024")
        case Quality.UNDECIDED:
            yield unknown("guide")
        case Quality.GOOD:
            pass
    if guided.backend:
        yield unknown("guide backend")
    if request.stopping.min_tokens or request.stopping.ignore_eos:
        yield unknown("a guide whose end is not to end the output")


def mode_of(kind: str) -> int:
    """The GuidedDecodingMode of a variant of the guide oneof."""
    return v1.GuidedDecodingMode.Value(f"GUIDED_DECODING_MODE_{kind.upper()}")


def offered_modes(declared: Declared) -> frozenset[int]:
    """Advertised modes; none where `supported` is false or absent, which counts as false."""
    model = declared.model if declared.model is not None else v1.ModelInfo()
    offered = model.generation.guided_decoding
    return frozenset(offered.modes) if offered.supported else frozenset()


def quality(guided: v1.GuidedDecoding) -> Quality:
    """What the guide's own text decides; UNDECIDED when no guide is set."""
    judges: Mapping[str | None, Callable[[], Quality]] = {
        "json_schema": lambda: _schema(guided.json_schema),
        "regex": lambda: _regex(guided.regex),
        "ebnf_grammar": lambda: _ebnf(guided.ebnf_grammar),
        "structural_tag": lambda: _structural_tag(guided.structural_tag),
        "choice": lambda: _choice(list(guided.choice.choices)),
        "json_object": lambda: Quality.GOOD,
    }
    judge = judges.get(guided.WhichOneof("guide"))
    return Quality.UNDECIDED if judge is None else judge()


def _choice(choices: list[str]) -> Quality:
    if not choices:
        return Quality.MALFORMED
    plain = all(choice and choice.isprintable() for choice in choices)
    distinct = len(set(choices)) == len(choices) <= MAX_CHOICES
    short = sum(map(len, choices)) <= MAX_TEXT
    return Quality.GOOD if plain and distinct and short else Quality.UNDECIDED


def _regex(text: str) -> Quality:
    if _unclosed(text):
        return Quality.MALFORMED
    return Quality.GOOD if text and len(text) <= MAX_TEXT and _portable(text) else Quality.UNDECIDED


def _unclosed(text: str) -> bool:
    """Whether a group, a class or an escape is begun and not ended."""
    depth, inside, at = 0, False, 0
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            if at + 1 == len(text):
                return True
            at += 1
        elif inside:
            inside = letter != "]"
        elif letter == "[":
            if text[at + 1 : at + 2] in {"]", "^"}:
                return False  # where such a class ends depends on the dialect
            inside = True
        elif letter in "()":
            depth += 1 if letter == "(" else -1
        at += 1
    return inside or depth > 0


def _portable(text: str) -> bool:
    """Whether it consists of portable parts, nothing is repeated twice, and Python takes it."""
    at, repeatable = 0, False
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or (part.lastgroup == "repeat" and not repeatable):
            return False
        repeatable = part.lastgroup == "one"
        at = part.end()
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def _ebnf(text: str) -> Quality:
    if _OTHER_EBNF & set(text):
        return Quality.UNDECIDED
    outside = "".join(text.split('"')[::2])
    unclosed = text.count('"') % 2 or outside.count("(") > outside.count(")")
    return Quality.MALFORMED if unclosed else Quality.UNDECIDED


def _structural_tag(text: str) -> Quality:
    return Quality.UNDECIDED if isinstance(_parsed(text), dict) else Quality.MALFORMED


def _schema(text: str) -> Quality:
    schema = _parsed(text)
    if not isinstance(schema, (dict, bool)) or _untyped(schema):
        return Quality.MALFORMED
    small = len(text) <= MAX_TEXT
    return Quality.GOOD if small and _plain_object(schema) else Quality.UNDECIDED


def _parsed(text: str) -> Any:
    """The JSON value; None, which no guide may be, for what is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _untyped(schema: Any) -> bool:
    """Whether its `type` is none of the seven that exist, there or one level below."""
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type", "object")
    kinds = kind if isinstance(kind, list) else [kind]
    if any(not isinstance(each, str) or each not in _TYPES for each in kinds):
        return True
    properties = schema.get("properties")
    below = properties.values() if isinstance(properties, dict) else ()
    return any(_untyped(each) for each in below)


def _plain(schema: Any) -> bool:
    """Whether every keyword is one that all implementations know, used in the plainest way."""
    if not isinstance(schema, dict):
        return False
    if schema.keys() == {"enum"}:
        return _plain_enum(schema["enum"])
    match schema.get("type"):
        case "boolean" | "integer" | "null":
            return len(schema) == 1
        case "array":
            return _plain_array(schema)
        case "object":
            return _plain_object(schema)
        case _:
            return False


def _plain_enum(values: Any) -> bool:
    texts = isinstance(values, list) and all(isinstance(each, str) for each in values)
    return texts and 0 < len(values) == len(set(values))


def _plain_array(schema: dict[str, Any]) -> bool:
    least, most = schema.get("minItems", 0), schema.get("maxItems", 8)
    counted = isinstance(least, int) and isinstance(most, int) and 0 <= least <= most <= 8
    return schema.keys() <= _ARRAY_KEYS and counted and _plain(schema.get("items"))


def _plain_object(schema: Any) -> bool:
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return False
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not properties or not isinstance(required, list):
        return False
    closed = schema.keys() == _OBJECT_KEYS and schema["additionalProperties"] is False
    named = all(isinstance(name, str) for name in required) and len(required) == len(properties)
    return closed and named and set(required) == set(properties) and _all_plain(properties)


def _all_plain(properties: dict[str, Any]) -> bool:
    return all(_plain(schema) for schema in properties.values())
