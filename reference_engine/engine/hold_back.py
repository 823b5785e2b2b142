"""Token records with their text, released together once nothing can cut them any more."""

from reference_engine.engine.output import Token

Release = tuple[tuple[Token, ...], str]


class HoldBack:
    """A record waits until all its text is decided, so records and text of a release agree.

    Positions are characters of the whole output text.
    """

    def __init__(self) -> None:
        self._records: list[tuple[Token, int]] = []
        self._text = ""
        self._released = 0

    @property
    def length(self) -> int:
        """Characters added so far, released or not."""
        return self._released + len(self._text)

    def add(self, token: Token, piece: str, *, incomplete: bool) -> None:
        """Append a record and the text that became complete with it.

        incomplete: the record also began a code point, which will be the next character.
        """
        self._text += piece
        self._records.append((token, self.length + incomplete))

    def add_text(self, piece: str) -> None:
        """Append text of records that are there already."""
        self._text += piece

    def cut(self, length: int) -> None:
        """Drop all text from character `length` on."""
        self._text = self._text[: max(0, length - self._released)]

    def drop_last_record(self) -> None:
        """Withhold the newest record."""
        self._records.pop()

    def release(self, undecided: int) -> Release:
        """Records whose text ends before the last `undecided` characters, and that text."""
        limit = self.length - undecided
        if not undecided and self._records and self._records[-1][1] <= limit:
            # The usual case, in a third of the time: nothing waits for a stop or a code point.
            return self.release_all()
        count = 0
        end = self._released
        for _, record_end in self._records:
            if record_end > limit:
                break
            count += 1
            end = record_end
        tokens = tuple(token for token, _ in self._records[:count])
        del self._records[:count]
        return tokens, self._take(end)

    def release_all(self) -> Release:
        """Everything that still waits."""
        tokens = tuple(token for token, _ in self._records)
        self._records.clear()
        return tokens, self._take(self.length)

    def _take(self, end: int) -> str:
        size = end - self._released
        text, self._text = self._text[:size], self._text[size:]
        self._released = end
        return text
