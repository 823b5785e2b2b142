"""Laws about what outputs say, on single calls."""

from __future__ import annotations

import json

import grpc
import pytest

from conformance.laws import Finding
from conformance.laws.languages import NESTED, YES_OR_NO, conforms
from oe_wire import v1
from tests.conformance.laws.build import (
    LENGTH,
    STOP,
    ending,
    finished,
    request,
    rule,
    stream,
    tokens,
    usage,
)

OBJECT = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
TAG = json.dumps(
    {
        "type": "structural_tag",
        "format": {
            "type": "tag",
            "begin": "<a>",
            "content": {"type": "json_schema", "json_schema": json.loads(OBJECT)},
            "end": "</a>",
        },
    }
)


def choice(*choices: str) -> v1.GuidedDecoding:
    return v1.GuidedDecoding(choice=v1.ChoiceConstraint(choices=choices))


MEMBERS: list[tuple[v1.GuidedDecoding, str, bool | None]] = [
    (choice("north", "north-east"), "north-east", True),
    (choice("north", "north-east"), "north-", False),
    (v1.GuidedDecoding(regex="(ab|cd)[0-9]{3}"), "cd123", True),
    (v1.GuidedDecoding(regex="(ab|cd)[0-9]{3}"), "cd123\n", False),
    (v1.GuidedDecoding(regex="(ab"), "ab", None),
    (v1.GuidedDecoding(json_schema=OBJECT), ' {"a": 1} ', True),
    (v1.GuidedDecoding(json_schema=OBJECT), '{"a": "1"}', False),
    (v1.GuidedDecoding(json_schema=OBJECT), '{"a": 1}x', False),
    (v1.GuidedDecoding(json_schema=OBJECT), "", False),
    (v1.GuidedDecoding(json_schema='{"type": "no such"}'), "1", None),
    (v1.GuidedDecoding(json_schema='{"$ref": "https://example.invalid/x"}'), "1", None),
    (v1.GuidedDecoding(json_object=v1.JsonObjectConstraint()), "{}", True),
    (v1.GuidedDecoding(json_object=v1.JsonObjectConstraint()), "[]", False),
    (v1.GuidedDecoding(json_object=v1.JsonObjectConstraint()), '{"a": NaN}', False),
    (v1.GuidedDecoding(ebnf_grammar=YES_OR_NO), "no", True),
    (v1.GuidedDecoding(ebnf_grammar=YES_OR_NO), "yesno", False),
    (v1.GuidedDecoding(ebnf_grammar=NESTED), "((x))", True),
    (v1.GuidedDecoding(ebnf_grammar=NESTED), "((x)", False),
    (v1.GuidedDecoding(ebnf_grammar="root ::= other"), "x", None),
    (v1.GuidedDecoding(structural_tag=TAG), '<a>{"a": 2}</a>', True),
    (v1.GuidedDecoding(structural_tag=TAG), '<a>{"b": 2}</a>', False),
    (v1.GuidedDecoding(structural_tag=TAG), '{"a": 2}', False),
    (v1.GuidedDecoding(structural_tag='{"structures": []}'), "x", None),
    (v1.GuidedDecoding(), "x", None),
]


@pytest.mark.parametrize(("guide", "text", "expected"), MEMBERS)
def test_membership(guide: v1.GuidedDecoding, text: str, expected: bool | None) -> None:
    """A text belongs to a guide's language or not, and what cannot be told is not guessed."""
    assert conforms(guide, text) is expected


def answered(said: str, reason: int = STOP, **match: str | int) -> object:
    """The ruling of the law on an output of the guide `north`."""
    asked = request()
    asked.guided.CopyFrom(choice("north"))
    end = finished(0, reason, **match)  # type: ignore[arg-type]
    return rule("STREAM-026", stream(asked, tokens(0, [1], said), end, usage=usage(3, 1)))


def test_an_output_that_was_cut_proves_nothing() -> None:
    """Neither the length nor a condition of the caller lets the guide come to its end."""
    assert answered("nor", LENGTH) is None
    assert answered("nor", STOP, text="th") is None
    assert answered("north", STOP, eos=2) is True
    assert isinstance(answered("nor", STOP, eos=2), Finding)
    assert isinstance(answered("nor", STOP), Finding)


def test_a_replacement_character_is_certain_under_a_guide_only() -> None:
    """A model may write U+FFFD itself, or bytes that are no character."""
    event = tokens(0, [1], "\ufffd")
    assert rule("STREAM-025", stream(request(), event, finished(0))) is True
    asked = request()
    asked.guided.CopyFrom(choice("\ufffd"))
    assert rule("STREAM-025", stream(asked, event, finished(0))) is True
    asked.guided.CopyFrom(choice("語"))
    assert isinstance(rule("STREAM-025", stream(asked, event, finished(0))), Finding)


def test_ascii_proves_nothing() -> None:
    """Only characters of several bytes can be torn."""
    assert rule("STREAM-025", stream(request(), tokens(0, [1], "abc"), finished(0))) is None


def test_bytes_that_are_no_text_are_found() -> None:
    """What the reader of the messages says about the text is taken over."""
    details = "unparsable response: message 0 is not a M: token.text is not valid UTF-8"
    end = ending(grpc.StatusCode.INTERNAL, details)
    assert isinstance(rule("STREAM-025", stream(request(), end=end)), Finding)
    other = ending(grpc.StatusCode.INTERNAL, "unparsable response: message 0 is not a M: x")
    assert rule("STREAM-025", stream(request(), end=other)) is None
