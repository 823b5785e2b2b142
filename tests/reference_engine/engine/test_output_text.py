"""Stop texts, held-back text and incremental decoding, against simple whole-text models."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference_engine.engine.detokenizer import Detokenizer
from reference_engine.engine.output import Token
from reference_engine.engine.output_text import OutputText
from reference_engine.engine.request import Stopping
from reference_engine.engine.stop import StopText


class TableTokenizer:
    """Token i stands for table[i]."""

    def __init__(self, table: list[bytes]) -> None:
        self.table = table

    def token_bytes(self, token_id: int) -> bytes:
        return self.table[token_id]


PIECES = st.lists(st.binary(max_size=5), max_size=12)


@given(PIECES)
def test_pieces_join_to_the_whole(pieces):
    """Incremental pieces joined are the bytes decoded at once, each piece valid on its own."""
    detokenizer = Detokenizer(TableTokenizer(pieces))
    texts = [detokenizer.add(index) for index in range(len(pieces))]
    for text in texts:
        text.encode("utf-8")
    assert "".join(texts) + detokenizer.flush() == b"".join(pieces).decode(errors="replace")


@given(st.text(max_size=20), st.data())
def test_valid_text_is_never_replaced(text, data):
    """Whole code points cut at any byte come out as they went in."""
    encoded = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(encoded)), max_size=6)))
    bounds = [0, *cuts, len(encoded)]
    pieces = [encoded[a:b] for a, b in pairwise(bounds)]
    detokenizer = Detokenizer(TableTokenizer(pieces))
    assert "".join(detokenizer.add(index) for index in range(len(pieces))) == text
    assert not detokenizer.incomplete


# A small alphabet, so that stop texts and their beginnings come up often.
SMALL = st.text("abé", max_size=4)
STOPS = st.lists(st.text("abé", min_size=1, max_size=4), min_size=1, max_size=3, unique=True)


def first_stop(text: str, stops: list[str]) -> tuple[int, int] | None:
    """[start, end) of the stop that is complete first when text comes by the character."""
    for end in range(1, len(text) + 1):
        starts = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if starts:
            return min(starts), end
    return None


def feed(pieces: list[bytes], stopping: Stopping):
    """Releases, kept records and whether it stopped."""
    output = OutputText(TableTokenizer(pieces), stopping)
    releases = []
    stop = None
    used = 0
    for index in range(len(pieces)):
        used += 1
        stop = output.add(Token(index), may_stop=True)
        if stop is not None:
            break
        releases.append(output.release())
    releases.append(output.finish())
    return releases, stop, used


@given(st.lists(SMALL, max_size=8), STOPS, st.booleans())
@example(pieces=["abab"], stops=["abab", "ba"], include=False)
@example(pieces=["abab"], stops=["b", "ab"], include=False)
def test_stop_text(pieces, stops, include):
    """The text is the whole up to the stop, whatever the token borders are."""
    text = "".join(pieces)
    stopping = Stopping(stop_texts=tuple(stops), include_stop=include)
    releases, stop, used = feed([piece.encode() for piece in pieces], stopping)
    emitted = "".join(text for _, text in releases)
    records = [token.token_id for tokens, _ in releases for token in tokens]
    found = first_stop(text, stops)
    if found is None:
        assert (stop, emitted, records) == (None, text, list(range(len(pieces))))
        return
    start, end = found
    assert stop is not None
    assert stop.text == text[start:end]
    assert emitted == text[: end if include else start]
    if not include:
        assert not any(stop in emitted for stop in stops)
    assert used - len(records) in (0, 1)
    assert records == list(range(len(records)))
    assert "".join(pieces[record] for record in records).startswith(emitted)


@given(st.lists(SMALL, max_size=8), STOPS)
def test_releases_agree_with_records(pieces, stops):
    """Before the end, the text of a release is the text of its records."""
    releases, _, _ = feed([piece.encode() for piece in pieces], Stopping(stop_texts=tuple(stops)))
    for tokens, text in releases[:-1]:
        assert "".join(pieces[token.token_id] for token in tokens) == text


@given(PIECES)
def test_nothing_is_lost_without_stops(pieces):
    """Without stop texts all records go out and the text is the decoded whole."""
    releases, stop, _ = feed(pieces, Stopping())
    assert stop is None
    assert "".join(text for _, text in releases) == b"".join(pieces).decode(errors="replace")
    assert [token.token_id for tokens, _ in releases for token in tokens] == [*range(len(pieces))]


@pytest.mark.parametrize(
    ("text", "undecided"), [("ab", 2), ("xa", 1), ("x", 0), ("aba", 1), ("abab", 2)]
)
def test_undecided(text, undecided):
    """Only the end of the text that a stop text begins with is held."""
    stop = StopText(("abc",))
    for character in text:
        assert stop.add(character) is None
    assert stop.undecided == undecided
