"""The best tokens by tiles against a search through everything."""

import pytest
import torch

from reference_engine.model.best import TILE, WIDE_TILE, best_token, best_tokens

SIZES = (1, 100, 4 * WIDE_TILE, 4 * WIDE_TILE + 1, 9 * WIDE_TILE - 1, 5000)


@pytest.mark.parametrize("vocabulary", SIZES)
def test_the_best_token_is_the_first_of_the_largest(vocabulary: int) -> None:
    """Wherever it is: few distinct values, so that it ties, and each place of the last tiles."""
    generator = torch.Generator().manual_seed(vocabulary)
    rows = torch.randint(0, 3, (50, vocabulary), generator=generator).float()
    assert torch.equal(best_token(rows), rows.argmax(dim=1))
    last = torch.arange(max(0, vocabulary - 300), vocabulary)
    peaks = torch.zeros(len(last), vocabulary).scatter_(1, last[:, None], 1.0)
    assert torch.equal(best_token(peaks), last)
    assert best_token(torch.full((2, vocabulary), -torch.inf)).tolist() == [0, 0]


@pytest.mark.parametrize("vocabulary", SIZES)
@pytest.mark.parametrize("size", [1, 16, 64])
def test_the_best_tokens_are_those_of_a_sort(vocabulary: int, size: int) -> None:
    """In order of value and then id; all that lie above the last, which may tie with others."""
    size = min(size, vocabulary)
    generator = torch.Generator().manual_seed(vocabulary)
    rows = (torch.randn(50, vocabulary, generator=generator) * 8).round()
    rows[1, ::3] = -torch.inf
    values, ids = best_tokens(rows, size)
    ranked = rows.sort(dim=1, descending=True, stable=True)
    assert torch.equal(values, ranked.values[:, :size])
    above = values > values[:, -1:]
    assert torch.equal(ids[above], ranked.indices[:, :size][above])
    assert torch.equal(rows.gather(1, ids), values)
    assert all(len(set(row)) == size for row in ids.tolist())


def test_tiles_are_used_where_they_help() -> None:
    """The largest vocabulary here has enough of both sizes for every number of tokens."""
    assert SIZES[-1] // WIDE_TILE >= 4
    assert SIZES[-1] // TILE >= 4 * 16
