from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.errors import HarnessError
from conformance.records.leak import checked_text, leak_of, spoken

MARKER = 'marker-5\u00e9\U0001f600"\\ text'


@given(st.binary(max_size=7), st.binary(max_size=7))
def test_base64_wherever_it_begins(before: bytes, after: bytes) -> None:
    """A text is found in base64, whatever stands before and after it."""
    encoded = base64.b64encode(before + MARKER.encode() + after)
    assert leak_of(encoded, [MARKER]) == "base64"


@pytest.mark.parametrize(
    "artifact",
    [
        MARKER,
        json.dumps({"x": MARKER}),
        json.dumps({"x": MARKER}, ensure_ascii=False),
        json.dumps(json.dumps(MARKER)),
        repr(MARKER),
        MARKER.encode().hex(),
        MARKER.encode().hex().upper(),
        base64.urlsafe_b64encode(MARKER.encode()).decode(),
    ],
)
def test_forms(artifact: str) -> None:
    """Each form in which a text travels is known."""
    assert leak_of(artifact.encode(), [MARKER])
    with pytest.raises(HarnessError) as refused:
        checked_text(artifact, [MARKER])
    assert "marker" not in str(refused.value)


def test_nothing_there() -> None:
    """An artifact without it passes, and short texts are not looked for."""
    assert checked_text("stop", [MARKER, "stop"]) == "stop"


def test_spoken() -> None:
    """What a model said is found wherever an API puts it, joined over its messages as well."""
    values = [
        {"choices": [{"delta": {"content": "one "}}]},
        {"type": "response.output_text.delta", "delta": "two "},
        {"response": "three", "model": "not this"},
        {"output": [{"content": [{"text": "four"}]}], "id": "nor this"},
    ]
    assert spoken(values) == ["one ", "two ", "three", "four", "one two threefour"]
