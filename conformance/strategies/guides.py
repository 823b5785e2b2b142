"""Guides for requests: small ones that engines take, and ones that nothing can compile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from conformance.laws.languages import NESTED, YES_OR_NO
from conformance.oracle.guides import mode_of, offered_modes
from conformance.wire.declared import Declared
from oe_wire import v1

# Tokens in which an output ends that keeps to one of the guides, even letter by letter.
GUIDED_TOKENS = 64
# One-letter tokens, tokens of bytes, and texts of which one begins another.
CHOICES = ("north", "south", "north-east")
# Two, three and four bytes a letter; no tokenizer has a token for each of them.
WIDE_CHOICES = ("é語🙂ßД한🦊", "日本語🙃")

_ANSWER = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "size": {"enum": ["small", "large"]}},
    "required": ["ok", "size"],
    "additionalProperties": False,
}
_FLAGS = {
    "type": "object",
    "properties": {
        "flags": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}
    },
    "required": ["flags"],
    "additionalProperties": False,
}
_TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<answer>",
        "content": {"type": "json_schema", "json_schema": _ANSWER},
        "end": "</answer>",
    },
}

_GOOD: Mapping[str, Sequence[v1.GuidedDecoding]] = {
    "choice": [v1.GuidedDecoding(choice=v1.ChoiceConstraint(choices=CHOICES))],
    "regex": [
        v1.GuidedDecoding(regex="(ab|cd)[0-9]{3}"),
        v1.GuidedDecoding(regex="[a-c]{2,4}x"),
    ],
    "json_schema": [
        v1.GuidedDecoding(json_schema=json.dumps(_ANSWER)),
        v1.GuidedDecoding(json_schema=json.dumps(_FLAGS)),
    ],
    "json_object": [v1.GuidedDecoding(json_object=v1.JsonObjectConstraint())],
    "ebnf_grammar": [
        v1.GuidedDecoding(ebnf_grammar=YES_OR_NO),
        v1.GuidedDecoding(ebnf_grammar=NESTED),
    ],
    "structural_tag": [v1.GuidedDecoding(structural_tag=json.dumps(_TAG))],
}

_MALFORMED: Mapping[str, Sequence[v1.GuidedDecoding]] = {
    "choice": [v1.GuidedDecoding(choice=v1.ChoiceConstraint())],
    "regex": [v1.GuidedDecoding(regex="(ab"), v1.GuidedDecoding(regex="[a-")],
    "json_schema": [
        v1.GuidedDecoding(json_schema="{"),
        v1.GuidedDecoding(json_schema="[1]"),
        v1.GuidedDecoding(json_schema='{"type": "no such type"}'),
    ],
    "json_object": [],
    "ebnf_grammar": [
        v1.GuidedDecoding(ebnf_grammar='root ::= "yes'),
        v1.GuidedDecoding(ebnf_grammar='root ::= ("yes"'),
    ],
    "structural_tag": [v1.GuidedDecoding(structural_tag="{")],
}


def good_guides(declared: Declared) -> list[v1.GuidedDecoding]:
    """Guides of the modes that the engine offers, the simplest modes first."""
    return _of(_GOOD, declared, offered=True)


def malformed_guides(declared: Declared) -> list[v1.GuidedDecoding]:
    """What does not compile, in the modes that the engine offers."""
    return _of(_MALFORMED, declared, offered=True)


def unoffered_guides(declared: Declared) -> list[v1.GuidedDecoding]:
    """One good guide of each mode that the engine does not offer."""
    firsts = {kind: guides[:1] for kind, guides in _GOOD.items()}
    return _of(firsts, declared, offered=False)


def wide_guide(declared: Declared) -> v1.GuidedDecoding | None:
    """A guide whose outputs consist of characters of several bytes; None where choices are not
    offered.
    """
    if mode_of("choice") not in offered_modes(declared):
        return None
    return v1.GuidedDecoding(choice=v1.ChoiceConstraint(choices=WIDE_CHOICES))


def _of(
    table: Mapping[str, Sequence[v1.GuidedDecoding]], declared: Declared, *, offered: bool
) -> list[v1.GuidedDecoding]:
    modes = offered_modes(declared)
    return [
        guide
        for kind, guides in table.items()
        if (mode_of(kind) in modes) is offered
        for guide in guides
    ]
