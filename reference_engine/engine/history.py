"""The tokens a sequence has seen, counted once each: what penalties need, kept up to date."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class TokenHistory:
    """Distinct tokens of prompt and output with their number in the output.

    A step adds one token; counting all of them again would cost 30 us for each 1,000.
    """

    def __init__(self, prompt: Iterable[int]) -> None:
        self._place: dict[int, int] = {}
        self._ids = np.zeros(64, dtype=np.int64)
        self._counts = np.zeros(64, dtype=np.float64)
        self.num_output = 0
        for token_id in prompt:
            self._place_of(token_id)

    @property
    def ids(self) -> NDArray[np.int64]:
        """Distinct tokens [k], in order of their first use."""
        return self._ids[: len(self._place)]

    @property
    def counts(self) -> NDArray[np.float64]:
        """How often each of `ids` is in the output [k]."""
        return self._counts[: len(self._place)]

    def add(self, output: Iterable[int]) -> None:
        """Append tokens of the output."""
        for token_id in output:
            place = self._place_of(token_id)
            self._counts[place] += 1
            self.num_output += 1

    def _place_of(self, token_id: int) -> int:
        place = self._place.get(token_id)
        if place is None:
            place = self._place[token_id] = len(self._place)
            if place == len(self._ids):
                self._ids = np.resize(self._ids, 2 * place)
                self._counts = np.concatenate((self._counts, np.zeros(place)))
            self._ids[place] = token_id
        return place
