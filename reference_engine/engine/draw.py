"""Draws for many rows at once: temperature, top-k, top-p, min-p, inverse CDF.

Nothing sorts or draws noise over the whole vocabulary (125 ms against 4 ms a step at 64 rows and
32,000 tokens). A row draws the same whatever other rows there are: it alone decides which way it
goes, and sums run along the row.

The CDF runs in order of token ids: rounding that swaps two near-equal tokens then changes the
result for almost no number.
"""

from collections.abc import Sequence as SequenceOf

import torch
from torch import Tensor
from torch.nn import functional

from reference_engine.engine.draws import Draws, draws_of, top_k_of
from reference_engine.engine.nucleus import keep_best, keep_nucleus
from reference_engine.engine.request import Sampling
from reference_engine.model.best import best_tokens

HEADS = (16, 64, 1024)
"""How many best tokens a filter looks at; a row for which that is too few takes the next size.
The last is for top-k only: finding 1,024 tokens takes as long as the histogram."""
SORTED = 4096
"""Vocabularies up to which a sort is as fast as the histogram."""
FAR = -1
"""Stands for all tokens, of which a histogram tells the best ones."""
TILE = 256
"""Tokens of a partial sum of the CDF."""


def draw(logits: Tensor, samplings: SequenceOf[Sampling], numbers: SequenceOf[float]) -> list[int]:
    """One token for each row of logits, float32 [rows, vocab], by its options and its number in
    [0, 1). Each row has a finite logit and a temperature above 0.
    """
    vocabulary = logits.shape[1]
    draws = draws_of(logits, samplings, numbers)
    tokens = [0] * len(samplings)
    sizes = _heads(vocabulary, on_gpu=logits.is_cuda)
    rows_of: dict[int, list[int]] = {}
    for row, sampling in enumerate(samplings):
        rows_of.setdefault(_first_head(sampling, vocabulary, sizes), []).append(row)
    for number, size in enumerate(sizes):
        rows = rows_of.get(size)
        if not rows:
            continue
        part = draws
        if len(rows) < len(samplings):
            part = draws.part(torch.tensor(rows, device=logits.device))
        drawn, enough = _drawn(part, size)
        for row, token in zip(rows, drawn.tolist(), strict=True):
            tokens[row] = token
        if enough is not None:
            for row, done in zip(rows, enough.tolist(), strict=True):
                if not done:
                    limited = top_k_of(samplings[row], vocabulary)
                    following = sizes[number + 1] if limited else _after(size, sizes)
                    rows_of.setdefault(following, []).append(row)
    return tokens


def _drawn(draws: Draws, size: int) -> tuple[Tensor, Tensor | None]:
    """Tokens [rows] by the way of a size, and whether it was enough, None for all of them."""
    if size == 0:
        return torch.cat([_from_all(part) for part in draws.chunks()]), None
    if size == FAR:
        return torch.cat([_from_nucleus(part) for part in draws.chunks()]), None
    drawn, enough = _from_head(draws, size)
    return drawn, None if size == draws.logits.shape[1] else enough


def _heads(vocabulary: int, *, on_gpu: bool) -> list[int]:
    """The ways of drawing from the cheapest: 0 needs no order, the last is always enough.

    A GPU sorts fast, and adds to a histogram in any order.
    """
    sort = on_gpu or vocabulary <= SORTED
    return [0, *(size for size in HEADS if size < vocabulary), vocabulary if sort else FAR]


def _first_head(sampling: Sampling, vocabulary: int, sizes: SequenceOf[int]) -> int:
    """The first of the sizes that may be enough."""
    top_k = top_k_of(sampling, vocabulary)
    if not top_k and sampling.top_p >= 1.0:
        return 0
    return next((size for size in sizes if size > top_k), sizes[-1])


def _after(size: int, sizes: SequenceOf[int]) -> int:
    """Where a row without top-k goes next: not to the largest head if there is a histogram."""
    following = sizes[sizes.index(size) + 1]
    return FAR if following == HEADS[-1] and sizes[-1] == FAR else following


def _from_all(draws: Draws) -> Tensor:
    """Tokens [rows] from the whole vocabulary; of the filters only min-p applies."""
    weights = draws.probabilities()
    if bool((draws.min_p > 0).any()):
        _keep_near(weights, draws.min_p)
    return _by_cdf(weights, draws.numbers)


def _from_nucleus(draws: Draws) -> Tensor:
    """Tokens [rows] whose top-k or top-p reaches far into the vocabulary."""
    weights = draws.probabilities()
    for row, top_k in enumerate(draws.top_k.tolist()):
        if top_k:
            keep_best(weights[row], draws.logits[row], int(top_k))
    keep_nucleus(weights, draws.logits, draws.temperature, draws.top_p)
    _keep_near(weights, draws.min_p)
    return _by_cdf(weights, draws.numbers)


def _keep_near(weights: Tensor, min_p: Tensor) -> None:
    """Set to 0 the weights [rows, vocab] below min_p [rows] of the largest."""
    lowest = weights.amax(dim=1, keepdim=True) * min_p[:, None].float()
    # As float32, because multiplying by a bool costs five times as much.
    weights *= torch.ge(weights, lowest, out=torch.empty_like(weights))


def _by_cdf(weights: Tensor, numbers: Tensor) -> Tensor:
    """Tokens [rows] by inverse CDF of weights [rows, vocab].

    First a tile is found by its sum, then a token in the tile: a CDF over all tokens would cost
    three times as much.
    """
    missing = -weights.shape[1] % TILE
    tiles = functional.pad(weights, (0, missing)) if missing else weights
    tiles = tiles.view(weights.shape[0], -1, TILE)
    sums = tiles.sum(dim=2).double()
    ends = sums.cumsum(dim=1)
    target = numbers * ends[:, -1]
    tile = _reached(ends, target)
    inside = tiles[torch.arange(len(tile), device=tile.device), tile]
    rest = target - (ends - sums).gather(1, tile[:, None])[:, 0]
    return tile * TILE + _reached(inside.double().cumsum(dim=1), rest)


def _from_head(draws: Draws, size: int) -> tuple[Tensor, Tensor]:
    """Tokens [rows] from the `size` best tokens, and whether these were enough, bool [rows]."""
    values, ids = best_tokens(draws.logits, size)
    weights = ((values.double() - values[:, :1]) / draws.temperature[:, None]).exp()
    column = torch.arange(size, device=values.device)
    weights *= (draws.top_k[:, None] == 0) | (column < draws.top_k[:, None])
    # top-p counts from the mass of all tokens that top-k leaves.
    total = weights.sum(dim=1)
    if size < draws.logits.shape[1]:
        total = torch.where(draws.mass > 0, draws.mass, total)
    before = weights.cumsum(dim=1) - weights
    keep = (before < (draws.top_p * total)[:, None]) & (weights >= draws.min_p[:, None])
    keep &= weights > 0
    keep[:, 0] = True
    # Any of the tokens that tie for the last place may be here: what is kept must lie above it.
    kept_last = values.gather(1, keep.sum(dim=1, keepdim=True) - 1)[:, 0]
    ids, order = ids.sort(dim=1)
    ends = (weights * keep).gather(1, order).cumsum(dim=1)
    at = _reached(ends, draws.numbers * ends[:, -1])
    return ids.gather(1, at[:, None])[:, 0], kept_last > values[:, -1]


def _reached(ends: Tensor, target: Tensor) -> Tensor:
    """The first place [rows] where the running sum ends [rows, k] exceeds the target.

    Rounding of the target cannot lead to a place without weight.
    """
    found = (ends <= target.clamp(min=0)[:, None]).sum(dim=1)
    last = (ends < ends[:, -1:]).sum(dim=1)
    return torch.minimum(found, last)
