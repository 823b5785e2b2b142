"""Top-k and top-p by a histogram against a sort of the whole vocabulary."""

import pytest
import torch
from torch import Tensor

from reference_engine.engine import draw as drawing
from reference_engine.engine.draw import draw
from reference_engine.engine.nucleus import keep_best, keep_nucleus
from reference_engine.engine.request import Sampling

VOCABULARY = 3000


def logits(kind: str) -> Tensor:
    generator = torch.Generator().manual_seed(7)
    noise = torch.randn(6, VOCABULARY, generator=generator)
    match kind:
        case "peaked":
            return 4 * noise
        case "tied":
            return (2 * noise).round()
        case "equal":
            return torch.zeros(6, VOCABULARY)
        case "banned":
            return noise.masked_fill(noise < 0, -torch.inf)
    return noise / 10


def sorted_nucleus(row: Tensor, temperature: float, top_p: float) -> list[int]:
    """Ids of the fewest best tokens that hold top_p, by the definition."""
    weights = ((row.double() - row.max()) / temperature).exp()
    order = row.argsort(descending=True, stable=True)
    before = weights[order].cumsum(0) - weights[order]
    kept = order[(before < top_p * weights.sum()) & (weights[order] > 0)]
    return sorted(kept.tolist())


@pytest.mark.parametrize("kind", ["peaked", "tied", "equal", "banned", "flat"])
@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 0.9), (0.3, 0.5), (5.0, 0.99), (1, 1e-9)])
def test_keeps_what_a_sort_keeps(kind: str, temperature: float, top_p: float) -> None:
    """The same tokens, also among equal logits and where a grammar leaves few."""
    rows = logits(kind)
    weights = ((rows - rows.amax(1, keepdim=True)) / temperature).exp()
    columns = [torch.full((len(rows),), one, dtype=torch.float64) for one in (temperature, top_p)]
    keep_nucleus(weights, rows, *columns)
    for row, kept in zip(rows, weights, strict=True):
        expected = set(sorted_nucleus(row, temperature, top_p))
        # The sums differ in the last bits, so one token more or less may reach top_p.
        assert len(expected ^ set(kept.nonzero()[:, 0].tolist())) <= 1


@pytest.mark.parametrize("kind", ["peaked", "tied", "equal", "banned", "flat"])
@pytest.mark.parametrize("count", [1, 700, VOCABULARY - 1])
def test_keeps_the_best(kind: str, count: int) -> None:
    """Exactly so many, of equal logits the first."""
    for row in logits(kind):
        weights = torch.ones(VOCABULARY)
        keep_best(weights, row, count)
        expected = row.argsort(descending=True, stable=True)[:count]
        assert weights.nonzero()[:, 0].tolist() == sorted(expected.tolist())


@pytest.mark.parametrize("kind", ["peaked", "tied", "equal", "banned", "flat"])
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(0, top_p=0.95),
        Sampling(0, top_k=1500),
        Sampling(0, 1.5, top_k=1200, top_p=0.9, min_p=0.01),
    ],
)
def test_draws_what_a_sort_draws(
    kind: str, sampling: Sampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of large vocabularies gives the tokens of the way of small ones."""
    rows, numbers = logits(kind), [0.0312 + index / 6.1 for index in range(6)]
    expected = draw(rows, [sampling] * 6, numbers)
    monkeypatch.setattr(drawing, "SORTED", 0)
    assert draw(rows, [sampling] * 6, numbers) == expected


@pytest.mark.parametrize("kind", ["tied", "equal", "banned", "flat"])
def test_a_row_draws_alone_what_it_draws_in_company(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside rows that need no histogram, and by itself."""
    monkeypatch.setattr(drawing, "SORTED", 0)
    rows = logits(kind)
    flat, narrow = Sampling(0, 1.0, top_p=0.95, min_p=1e-3), Sampling(0, 0.1, top_p=0.1)
    samplings = [flat, narrow, flat, flat, narrow, flat]
    numbers = [0.05 + index / 7 for index in range(6)]
    together = draw(rows, samplings, numbers)
    alone = [draw(rows[i : i + 1], samplings[i : i + 1], numbers[i : i + 1])[0] for i in range(6)]
    assert together == alone
