"""Strict JSON and newline-delimited JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.http.json_text import JsonFault, parse_json
from conformance.http.ndjson import parse_ndjson

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=8,
)

NO_JSON = {
    "empty": (b"", "no JSON"),
    "two": (b"{}{}", "no JSON"),
    "NaN": (b'{"a": NaN}', "NaN"),
    "infinity": (b"-Infinity", "Infinity"),
    "name twice": (b'{"a": 1, "a": 2}', "twice"),
    "mark": (b"\xef\xbb\xbf{}", "byte order mark"),
    "UTF-8": (b'"\xff"', "not UTF-8 at byte 1"),
    "deep": (b"[" * 100_000, ""),
}


@pytest.mark.parametrize("name", NO_JSON)
def test_what_is_no_json(name: str) -> None:
    """A fault that says why and quotes nothing."""
    data, said = NO_JSON[name]
    fault = parse_json(data)
    assert isinstance(fault, JsonFault)
    assert said in fault.problem


@given(JSON)
def test_json_is_read(value: object) -> None:
    """Every JSON value is read as what it is."""
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


def test_lines() -> None:
    """One object on each line, with its place; a carriage return before the line feed is legal."""
    body = b'{"a": 1}\n{"b": 2}\r\n'
    stream = parse_ndjson(body)
    assert [line.value for line in stream.lines] == [{"a": 1}, {"b": 2}]
    assert body[stream.lines[1].start : stream.lines[1].end] == b'{"b": 2}\r\n'
    assert (stream.faults, stream.unfinished) == ((), False)


@pytest.mark.parametrize(
    ("body", "said"),
    [(b"[1]\n", "no JSON object"), (b"\n{}\n", "no JSON"), (b'{"a"\n:1}\n', "no JSON")],
)
def test_bad_lines(body: bytes, said: str) -> None:
    """A line that is no object is a fault at its offset."""
    faults = parse_ndjson(body).faults
    assert said in faults[0].problem
    assert faults[0].offset == 0


def test_a_last_line_without_line_feed() -> None:
    """It is read, and the stream is unfinished."""
    stream = parse_ndjson(b'{"a": 1}')
    assert stream.unfinished
    assert len(stream.lines) == 1
