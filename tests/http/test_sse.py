"""The strict parser of event streams, and httpx-sse as the second opinion where both must agree."""

from __future__ import annotations

from collections.abc import Iterator

import httpx_sse
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.http.sse import SseEvent, parse_sse

WAYS = {
    "LF": (b"data: a\n\n", ["a"]),
    "CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
    "CR": (b"data: a\r\rdata: b\r\r", ["a", "b"]),
    "mixed ends": (b"data: a\r\n\ndata: b\r\r\n", ["a", "b"]),
    "no space": (b"data:a\n\n", ["a"]),
    "one space only": (b"data:  a\n\n", [" a"]),
    "several lines": (b"data: a\ndata: b\n\n", ["a\nb"]),
    "empty data": (b"data:\n\n", [""]),
    "data without colon": (b"data\n\n", [""]),
    "colon in data": (b"data: a: b\n\n", ["a: b"]),
    "comment": (b": keepalive 2048/15999\n\ndata: a\n\n", ["a"]),
    "comment inside": (b"data: a\n: x\ndata: b\n\n", ["a\nb"]),
    "retry": (b"retry: 100\n\ndata: a\n\n", ["a"]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
    "blank lines": (b"\n\n\ndata: a\n\n\n", ["a"]),
    "empty": (b"", []),
}


@pytest.mark.parametrize("name", WAYS)
def test_events(name: str) -> None:
    """Every way to write an event is read as browsers read it, without a fault."""
    body, wanted = WAYS[name]
    stream = parse_sse(body)
    assert [event.data for event in stream.events] == wanted
    assert stream.faults == ()
    assert not stream.unfinished


FAULTS = {
    "another field": (b"status: ok\ndata: a\n\n", "neither a comment"),
    "JSON over lines": (b'data: {\n"a": 1}\n\n', "neither a comment"),
    "field in capitals": (b"Data: a\n\n", "neither a comment"),
    "space before the colon": (b"data : a\n\n", "neither a comment"),
    "broken UTF-8": (b"data: \xf0\x9f\n\n", "not UTF-8"),
    "NUL in id": (b"id: a\0\ndata: a\n\n", "NUL"),
    "retry without number": (b"retry: soon\ndata: a\n\n", "no number"),
    "name without data": (b"event: x\n\n", "without data"),
    "long line": (b"data: " + b"a" * 300_000 + b"\n\n", "more than 262144"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    """What clients drop or misread in silence is a fault, with its place."""
    body, said = FAULTS[name]
    faults = parse_sse(body).faults
    assert said in faults[0].problem
    assert 0 <= faults[0].offset < len(body)


@pytest.mark.parametrize("body", [b"data: a", b"data: a\n", b"data: a\n\ndata: b\n", b"\n: x"])
def test_an_end_inside_an_event(body: bytes) -> None:
    """A body that stops before the blank line is unfinished, and that event is no event."""
    stream = parse_sse(body)
    assert stream.unfinished
    assert "b" not in [event.data for event in stream.events]


def test_names_ids_comments_and_places() -> None:
    """Named events keep their name, ids last, comments are counted, offsets cut the body."""
    body = b": one\nevent: message.delta\nid: 7\ndata: a\n\n: two\ndata: b\n\n"
    stream = parse_sse(body)
    assert stream.comments == 2
    first, second = stream.events
    assert (first.name, first.id, second.name, second.id) == ("message.delta", "7", "", "7")
    assert body[first.start : first.end] == b"event: message.delta\nid: 7\ndata: a\n\n"
    assert body[second.start : second.end] == b"data: b\n\n"


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=20)
FIELDS = st.one_of(
    TEXT.map(lambda text: f"data: {text}"),
    TEXT.map(lambda text: f"data:{text}"),
    TEXT.map(lambda text: f": {text}"),
    st.just("data"),
    st.integers(0, 9).map(lambda number: f"retry: {number}"),
)


def second_opinion(body: bytes) -> Iterator[SseEvent]:
    """The stream as httpx-sse reads it. It dispatches events without data, browsers do not."""
    decoder = httpx_sse._decoders.SSEDecoder()
    for line in body.decode().split("\n"):
        event = decoder.decode(line)
        if event is not None and event.data:
            yield SseEvent(event.data)


@given(st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=5))
def test_agrees_with_httpx_sse(blocks: list[list[str]]) -> None:
    """On legal streams both parsers see the same data."""
    body = "".join("\n".join(block) + "\n\n" for block in blocks).encode()
    strict = [event.data for event in parse_sse(body).events if event.data]
    assert strict == [event.data for event in second_opinion(body)]


@given(st.binary(max_size=200))
def test_never_raises(body: bytes) -> None:
    """Any bytes give a stream whose events lie inside the body, in order."""
    stream = parse_sse(body)
    ends = [0, *(event.end for event in stream.events)]
    assert ends == sorted(ends)
    assert ends[-1] <= len(body)


@given(st.lists(TEXT, min_size=1, max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_the_line_end_does_not_matter(lines: list[str], end: str) -> None:
    """Data of several lines is the same whatever ends the lines."""
    body = "".join(f"data: {line}{end}" for line in lines) + end
    assert [event.data for event in parse_sse(body.encode()).events] == ["\n".join(lines)]
