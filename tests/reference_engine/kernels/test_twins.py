import dataclasses
import sys

import pytest
import torch

from reference_engine.kernels.dispatch import TORCH, cuda_kernels, kernels_for
from reference_engine.kernels.logits import Penalties, process_logits
from tests.reference_engine.kernels.cases import Case, all_cases, worst

CPU = torch.device("cpu")


@pytest.mark.parametrize("case", list(all_cases()), ids=lambda case: case.name)
def test_twin_equals_the_definition(case: Case) -> None:
    """Every twin is within rounding of float64."""
    assert worst(case.run(TORCH, CPU)) <= case.tolerance


def test_cases_notice_a_wrong_kernel() -> None:
    """The judge is no rubber stamp: an attention that ignores half of its context fails."""

    def halved(q, keys, values, tables, contexts, max_context):
        return TORCH.paged_decode(q, keys, values, tables, contexts // 2, max_context)

    wrong = dataclasses.replace(TORCH, paged_decode=halved)
    for case in all_cases():
        if case.name.startswith("paged_decode"):
            assert worst(case.run(wrong, CPU)) > case.tolerance


def test_twins_serve_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU gets the twins in any case, a GPU where Triton isn't installed."""
    monkeypatch.setitem(sys.modules, "triton", None)
    assert kernels_for(CPU) is TORCH
    assert cuda_kernels.__wrapped__() is TORCH


def test_penalties_stay_finite() -> None:
    """Finite penalties that overflow float32 leave finite logits."""
    logits = torch.tensor([[3e38, -3e38, 1.0]])
    penalties = Penalties(
        rows=torch.zeros(2, dtype=torch.int32),
        tokens=torch.tensor([0, 1], dtype=torch.int32),
        counts=torch.ones(2, dtype=torch.int32),
        repetition=torch.tensor([1e-38]),
        frequency=torch.tensor([3e38]),
        presence=torch.tensor([3e38]),
    )
    process_logits(logits, torch.ones(1), penalties)
    assert torch.isfinite(logits).all()
