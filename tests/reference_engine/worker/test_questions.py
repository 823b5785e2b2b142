"""Questions: what is one, and what is said of what is none."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_engine.worker.questions import BadQuestionError, parse_question

CHOICE = {"kind": "choice", "prompt": "p", "options": ["a", "b"]}
SCORE = {"kind": "score", "prompt": "p", "low": 0, "high": 3}


def test_three_kinds():
    """Options and what they stand for."""
    choice = parse_question(json.dumps(CHOICE).encode())
    assert (choice.options, choice.values) == (("a", "b"), ("a", "b"))
    yes_no = parse_question(b'{"kind":"yes_no","prompt":"p"}')
    assert (yes_no.options, yes_no.values) == (("Yes", "No"), (True, False))
    score = parse_question(json.dumps(SCORE).encode())
    assert (score.options, score.values) == (("0", "1", "2", "3"), (0, 1, 2, 3))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "no JSON object"),
        (b'{"kind":"essay"}', "kind"),
        (b'{"kind":["choice"]}', "kind"),
        (json.dumps(CHOICE | {"top": 1}).encode(), "has the fields"),
        (json.dumps(CHOICE | {"prompt": ""}).encode(), "prompt"),
        (json.dumps(CHOICE | {"prompt": "\ud800"}).encode(), "prompt"),
        (json.dumps(CHOICE | {"options": ["a"]}).encode(), "2 to 64"),
        (json.dumps(CHOICE | {"options": ["a", "a"]}).encode(), "differ"),
        (json.dumps(CHOICE | {"options": ["a", 1]}).encode(), "texts"),
        (json.dumps(SCORE | {"low": True}).encode(), "low"),
        (json.dumps(SCORE | {"low": 0.5}).encode(), "low"),
        (json.dumps(SCORE | {"high": 0}).encode(), "high"),
        (json.dumps(SCORE | {"high": 64}).encode(), "high"),
    ],
)
def test_what_is_no_question_is_told_so(body, says):
    """The text names the field and what was expected."""
    with pytest.raises(BadQuestionError, match=says):
        parse_question(body)


@given(
    st.binary(max_size=60) | st.recursive(st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_no_bytes_break_the_parser(body):
    """Any bytes are a question or refused."""
    with contextlib.suppress(BadQuestionError):
        parse_question(body)
