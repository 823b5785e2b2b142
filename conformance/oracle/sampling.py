"""Reasons to refuse sampling parameters: GEN-012 and GEN-016 to GEN-020."""

from __future__ import annotations

import math
from collections.abc import Iterator

from conformance.oracle.expectation import Reason, broken, unknown
from conformance.oracle.limits import Limits
from oe_wire import v1

# Engines sample in float32: a value this near to a bound may fall on its other side.
MARGIN = 1e-6
# Beyond these, engines differ although no row forbids the value (1024 is a common kernel limit
# for top_k; OpenAI's ranges end at temperature 2 and penalties of 2).
USUAL_TEMPERATURE = (0.01, 2.0)
USUAL_PENALTY = 2.0
USUAL_REPETITION = (0.1, 2.0)
USUAL_TOP_K = 1000


def sampling_reasons(sampling: v1.SamplingParams, limits: Limits) -> Iterator[Reason]:
    """Every rule that these parameters break; absent fields break none."""
    yield from _sequences(sampling, limits)
    if sampling.HasField("temperature"):
        yield from _temperature(sampling.temperature)
    if sampling.HasField("top_p"):
        yield from _between("GEN-017", "top_p", sampling.top_p, zero_allowed=False)
    if sampling.HasField("min_p"):
        yield from _between("GEN-019", "min_p", sampling.min_p, zero_allowed=True)
    if sampling.HasField("top_k"):
        if sampling.top_k < -1:
            yield broken("GEN-018")
        elif sampling.top_k > USUAL_TOP_K:
            yield unknown("very large top_k")
    if sampling.HasField("repetition_penalty"):
        yield from _repetition(sampling.repetition_penalty)
    for name in ("frequency_penalty", "presence_penalty"):
        value = getattr(sampling, name)
        if not math.isfinite(value):
            yield broken("GEN-020")
        elif abs(value) > USUAL_PENALTY:
            yield unknown(f"unusual {name}")


def _sequences(sampling: v1.SamplingParams, limits: Limits) -> Iterator[Reason]:
    if not sampling.HasField("num_sequences"):
        return
    count = sampling.num_sequences
    if count == 0 or (limits.max_sequences is not None and count > limits.max_sequences):
        yield broken("GEN-012")
    elif limits.max_sequences is None and count > 1:
        yield unknown("several sequences while max_num_sequences is unreported")


def _temperature(value: float) -> Iterator[Reason]:
    low, high = USUAL_TEMPERATURE
    if not math.isfinite(value) or value <= -MARGIN:
        yield broken("GEN-016")
    elif value != 0 and not low <= value <= high:
        yield unknown("unusual temperature")


def _repetition(value: float) -> Iterator[Reason]:
    low, high = USUAL_REPETITION
    if not math.isfinite(value) or value == 0 or value <= -MARGIN:
        yield broken("GEN-020")
    elif not low <= value <= high:
        yield unknown("unusual repetition_penalty")


def _between(row: str, name: str, value: float, *, zero_allowed: bool) -> Iterator[Reason]:
    """A value in [0, 1], or in (0, 1] without zero."""
    if not math.isfinite(value) or value <= -MARGIN or value >= 1 + MARGIN:
        yield broken(row)
    elif value == 0:
        if not zero_allowed:
            yield broken(row)
    elif value < MARGIN or value > 1:
        yield unknown(f"{name} within float32 error of a bound")
