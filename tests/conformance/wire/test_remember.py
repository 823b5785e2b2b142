from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from conformance.wire.remember import remembered


@dataclass(frozen=True)
class Text:
    """A value with two readers."""

    words: str
    known: dict[Any, Any] = field(default_factory=dict, init=False, compare=False)


def test_a_value_is_read_once_by_each_reader() -> None:
    """Each reader has its own answer, also when that is None."""
    reads: list[str] = []

    @remembered
    def length(text: Text) -> int:
        reads.append("length")
        return len(text.words)

    @remembered
    def nothing(_: Text) -> None:
        reads.append("nothing")

    text = Text("abc")
    assert [length(text), length(text), nothing(text), nothing(text)] == [3, 3, None, None]
    assert reads == ["length", "nothing"]


def test_another_value_is_read_anew() -> None:
    """A changed copy knows nothing of the answers about the first."""

    @remembered
    def length(text: Text) -> int:
        return len(text.words)

    text = Text("abc")
    assert length(text) == 3
    assert length(replace(text, words="abcd")) == 4
    assert text == Text("abc")
