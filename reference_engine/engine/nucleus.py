"""Top-k and top-p over a whole vocabulary without sorting it.

A histogram by logit tells how far the probable tokens reach; only the tokens of the one bucket in
which they end are put in order.
"""

import torch
from torch import Tensor

BUCKETS = 2048
PER_NAT = 64
"""Buckets per unit of the logit over temperature; the last holds all that is below exp(-32)."""


def keep_nucleus(weights: Tensor, logits: Tensor, temperature: Tensor, top_p: Tensor) -> None:
    """Set to 0 the weights, float32 [rows, vocab], of all but the fewest best tokens that hold
    `top_p` of a row's weight; of equal logits those with the lower ids are kept.

    logits [rows, vocab] are what the weights come from, temperature and top_p float64 [rows].
    """
    gap = logits.amax(dim=1, keepdim=True) - logits
    gap.mul_((PER_NAT / temperature)[:, None].float()).clamp_(max=BUCKETS - 1)
    masses = weights.new_zeros(weights.shape[0], BUCKETS, dtype=torch.float64)
    masses.scatter_add_(1, gap.long(), weights.double())
    ends = masses.cumsum(dim=1)
    target = top_p * ends[:, -1]
    before = ends - masses
    last = (before < target[:, None]).sum(dim=1, keepdim=True) - 1
    reached = before.gather(1, last)[:, 0].tolist()
    # As float32, because multiplying by a bool costs five times as much.
    kept = torch.lt(gap, last + 1, out=torch.empty_like(gap))
    weights *= kept
    in_last = torch.ge(gap, last, out=gap).mul_(kept)
    for row, goal in enumerate(target.tolist()):
        ids = in_last[row].nonzero()[:, 0]
        ids = ids[logits[row, ids].argsort(descending=True, stable=True)]
        mass = weights[row, ids].double()
        beyond = reached[row] + mass.cumsum(dim=0) - mass >= goal
        weights[row, ids[beyond]] = 0


def keep_best(weights: Tensor, logits: Tensor, count: int) -> None:
    """Set to 0 the weights [vocab] of all but the `count` largest logits [vocab]; of equal logits
    those with the lower ids are kept.
    """
    last = logits.kthvalue(logits.shape[0] - count + 1).values
    weights.masked_fill_(logits < last, 0)
    tied = (logits == last).nonzero()[:, 0]
    ahead = int((logits > last).sum())
    weights[tied[count - ahead :]] = 0
