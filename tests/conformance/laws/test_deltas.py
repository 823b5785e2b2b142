"""The law that a stream sends what is new."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.wire.transcript import Transcript
from oe_wire import v1
from tests.conformance.laws.build import finished, found, request, rule, stream, tokens, usage


def sent(
    texts: Sequence[str],
    ids: Sequence[Sequence[int]] = (),
    counted: v1.Usage | None = None,
    max_tokens: int | None = None,
) -> Transcript:
    """One output of the given texts and record ids (one record per message by default)."""
    records = ids or [[at] for at in range(len(texts))]
    texts = texts or [""] * len(records)
    deltas = [tokens(0, part, text) for text, part in zip(texts, records, strict=True)]
    asked = request() if max_tokens is None else request(max_tokens=max_tokens)
    return stream(asked, *deltas, finished(0), usage=counted)


def test_deltas_are_kept() -> None:
    """Plain deltas are ruled True."""
    assert rule("STREAM-004", sent(["The", " sun", " is", " up"])) is True


def test_cumulative_text_is_found() -> None:
    """Text that grows from message to message is found at its third growth."""
    assert found("STREAM-004", sent(["The", "The sun", "The sun is", "The sun is up"])) == 3


def test_cumulative_ids_are_found_by_count() -> None:
    """Records beyond max_tokens or beyond the usage convict, repetitive or not."""
    ids = [[7] * size for size in range(1, 6)]
    assert found("STREAM-004", sent([], ids, usage(3, 5))) == 3
    assert found("STREAM-004", sent([], ids, max_tokens=5)) == 3
    other = [[7, 8, 9, 4][:size] for size in range(1, 5)]
    assert found("STREAM-004", sent([], other)) == 3


@pytest.mark.parametrize("most", [4, 7])
def test_a_model_that_repeats_itself_is_no_breach(most: int) -> None:
    """Growing chunks of one repeated word are deltas as far as anyone can tell."""
    assert rule("STREAM-004", sent([" la" * size for size in range(1, most)] + ["!"])) is True
    ids = [[7] * size for size in range(1, most)]
    texts = [" la" * size for size in range(1, most)]
    if most > 4:
        counted = usage(3, sum(map(len, ids)))
        assert rule("STREAM-004", sent(texts, ids, counted, max_tokens=100)) is True
        assert rule("STREAM-004", sent(texts, ids)) is True


def test_a_right_count_acquits_any_content() -> None:
    """A list that grows line by line is an output, when its tokens add up."""
    ids = [[1, 2, 3, 4][:size] for size in range(1, 5)]
    texts = ["abcd"[:size] for size in range(1, 5)]
    assert rule("STREAM-004", sent(texts, ids, usage(3, 10), max_tokens=50)) is True


def test_a_long_cumulative_repetition_is_found() -> None:
    """Eight growths in a row are no chunking any more."""
    assert found("STREAM-004", sent([" la" * size for size in range(1, 12)])) == 8


def test_short_streams_are_not_judged() -> None:
    """Three messages prove nothing."""
    assert rule("STREAM-004", sent(["a", "ab", "abc"])) is None
    assert rule("STREAM-004", stream(request(), finished(0))) is None


def test_one_broken_index_among_many_is_found() -> None:
    """Each index is read by itself."""
    events = []
    for size in range(1, 5):
        events += [tokens(0, [size], "abcd"[size - 1]), tokens(1, [size], "abcd"[:size])]
    call = stream(request(n=2), *events, finished(0), finished(1))
    assert found("STREAM-004", call) == 7
