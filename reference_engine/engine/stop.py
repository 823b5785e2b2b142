"""Stop texts across token borders.

Text is matched as if it came a character at a time: the stop text that is complete first wins
(the longest of those that end together), so the result does not depend on token borders.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Match:
    """Where a stop text lies in the whole output text: [start, end) in characters."""

    text: str
    start: int
    end: int


class StopText:
    """Looks for stop texts in a growing text."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._longest = max((len(stop) for stop in stops), default=0)
        self._tail = ""
        self._length = 0

    def add(self, piece: str) -> Match | None:
        """Append a piece; the first stop text that ends inside it, or None."""
        if not self._stops:
            return None
        window = self._tail + piece
        base = self._length - len(self._tail)
        old = len(self._tail)
        self._length += len(piece)
        found: Match | None = None
        for stop in self._stops:
            at = window.find(stop, max(0, old - len(stop) + 1))
            if at < 0:
                continue
            match = Match(stop, base + at, base + at + len(stop))
            if found is None or (match.end, match.start) < (found.end, found.start):
                found = match
        self._tail = window[max(0, len(window) - self._longest + 1) :] if self._longest else ""
        return found

    @property
    def undecided(self) -> int:
        """Characters at the end of the text that may be the beginning of a stop text."""
        most = 0
        for stop in self._stops:
            for size in range(min(len(stop) - 1, len(self._tail)), most, -1):
                if self._tail.endswith(stop[:size]):
                    most = size
                    break
        return most
