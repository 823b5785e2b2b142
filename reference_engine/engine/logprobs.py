"""Log probabilities, ranks and alternatives of token positions, from raw logits.

Rank 1 is the most likely token; equal values are ranked by token id, so ranks are unique.
"""

import torch
from torch import Tensor

from reference_engine.engine.output import Candidates, Score
from reference_engine.engine.request import CandidateMode, CandidateSelection


def score_tokens(
    logits: Tensor, token_ids: list[int], selection: CandidateSelection
) -> list[Score]:
    """The score of token_ids[i] under logits[i]; logits is float32 [len(token_ids), vocab]."""
    logprobs = torch.log_softmax(logits, dim=-1)
    chosen = torch.tensor(token_ids, dtype=torch.int64)
    values = logprobs.gather(1, chosen[:, None])
    ranks = _ranks(logprobs, chosen[:, None])[:, 0].tolist()
    return [
        Score(_bounded(value), rank, _candidates(row, selection))
        for value, rank, row in zip(values[:, 0].tolist(), ranks, logprobs, strict=True)
    ]


def _bounded(logprob: float) -> float:
    """Rounding can lift a certain token above 0, which is no log probability."""
    return min(logprob, 0.0)


def _ranks(logprobs: Tensor, token_ids: Tensor) -> Tensor:
    """Ranks of token_ids [rows, k] in logprobs [rows, vocab]."""
    values = logprobs.gather(1, token_ids)
    columns = []
    vocabulary = torch.arange(logprobs.shape[1])
    for column in range(token_ids.shape[1]):
        value, token = values[:, column, None], token_ids[:, column, None]
        ahead = (logprobs > value) | ((logprobs == value) & (vocabulary < token))
        columns.append(ahead.sum(dim=1) + 1)
    return torch.stack(columns, dim=1)


def _candidates(row: Tensor, selection: CandidateSelection) -> Candidates | None:
    """The asked alternatives of one position; row is [vocab]."""
    if selection.mode is CandidateMode.TOP_N:
        token_ids = _top(row, selection.top_n)
        ranks = list(range(1, len(token_ids) + 1))
    elif selection.mode is CandidateMode.ALL:
        token_ids = torch.sort(row, descending=True, stable=True).indices.tolist()
        ranks = list(range(1, len(token_ids) + 1))
    elif selection.mode is CandidateMode.TOKEN_IDS:
        token_ids = list(selection.token_ids)
        asked = torch.tensor([token_ids], dtype=torch.int64)
        ranks = _ranks(row[None], asked)[0].tolist() if token_ids else []
    else:
        return None
    values = [_bounded(value) for value in row[token_ids].tolist()]
    return Candidates(tuple(token_ids), tuple(values), tuple(ranks))


def _top(row: Tensor, count: int) -> list[int]:
    """Ids of the `count` best values, best first, equal values by id."""
    if count == 0:
        return []
    threshold = torch.topk(row, min(count, row.shape[0])).values[-1]
    reached = torch.nonzero(row >= threshold)[:, 0].tolist()
    values = row[reached].tolist()
    ordered = sorted(zip(values, reached, strict=True), key=lambda pair: (-pair[0], pair[1]))
    return [token for _, token in ordered[:count]]
