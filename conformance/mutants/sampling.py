"""Mutants that take sampling parameters outside their bounds, by ignoring or clamping them."""

from __future__ import annotations

import math
from typing import Any

from conformance.mutants.behaviours import repaired
from conformance.mutants.methods import GENERATE
from conformance.mutants.mutant import Mutant


def _any_temperature(request: Any) -> None:
    value = request.sampling.temperature
    if not math.isfinite(value) or value < 0:
        request.sampling.temperature = 1.0


def _not_a_number_passes(request: Any) -> None:
    """`value < 0` is false for NaN."""
    if math.isnan(request.sampling.temperature):
        request.sampling.temperature = 0.0


def _any_top_p(request: Any) -> None:
    if request.sampling.HasField("top_p") and not 0 < request.sampling.top_p <= 1:
        request.sampling.ClearField("top_p")


def _any_top_k(request: Any) -> None:
    request.sampling.top_k = max(request.sampling.top_k, -1)


def _any_min_p(request: Any) -> None:
    if not 0 <= request.sampling.min_p <= 1:
        request.sampling.ClearField("min_p")


def _any_penalty(request: Any) -> None:
    sampling = request.sampling
    for name in ("repetition_penalty", "frequency_penalty", "presence_penalty"):
        value = getattr(sampling, name)
        if not math.isfinite(value) or (name == "repetition_penalty" and value <= 0):
            sampling.ClearField(name)


MUTANTS = (
    Mutant(
        "temperature-unchecked",
        "OE-CORE-GEN-016",
        "A temperature that makes no sense is replaced by the default.",
        {GENERATE: repaired(_any_temperature)},
    ),
    Mutant(
        "temperature-nan-passes",
        "OE-CORE-GEN-016",
        "The bound is tested by a comparison that NaN passes.",
        {GENERATE: repaired(_not_a_number_passes)},
    ),
    Mutant(
        "top-p-unchecked",
        "OE-CORE-GEN-017",
        "top_p outside its bounds turns the filter off.",
        {GENERATE: repaired(_any_top_p)},
    ),
    Mutant(
        "top-k-unchecked",
        "OE-CORE-GEN-018",
        "Every negative top_k means no limit.",
        {GENERATE: repaired(_any_top_k)},
    ),
    Mutant(
        "min-p-unchecked",
        "OE-CORE-GEN-019",
        "min_p outside its bounds is ignored.",
        {GENERATE: repaired(_any_min_p)},
    ),
    Mutant(
        "penalties-unchecked",
        "OE-CORE-GEN-020",
        "Penalties that would spoil the logits are left out.",
        {GENERATE: repaired(_any_penalty)},
    ),
)
