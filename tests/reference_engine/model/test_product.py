from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from reference_engine.errors import ConfigError
from reference_engine.model import product
from reference_engine.model.product import (
    AUTO_BFLOAT16_WEIGHTS,
    Products,
    resolve_dtype,
    rows_are_independent,
)


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("rows", "size", "out"), [(1, 24, 40), (4, 40, 7), (68, 192, 320)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_a_product_is_the_product(
    rows: int, size: int, out: int, dtype: torch.dtype, tolerance: float, *, biased: bool
) -> None:
    """Packed or not, it multiplies and adds the bias, to the precision of its type."""
    x, weight = torch.randn(rows, size), torch.randn(out, size) / size**0.5
    bias = torch.randn(out) if biased else None
    found = Products(dtype).make(weight, bias)(x)
    assert found.dtype == (torch.float32 if biased else dtype)
    expected = torch.nn.functional.linear(x.double(), weight.double()).float()
    if bias is not None:
        expected += bias
    torch.testing.assert_close(found.float(), expected, atol=tolerance, rtol=tolerance)


def test_the_type_of_one_product_can_differ() -> None:
    """A float32 product of a bfloat16 model is float32."""
    x, weight = torch.randn(4, 64), torch.randn(9, 64)
    exact = x @ weight.T
    found = Products(torch.bfloat16).make(weight, dtype=torch.float32)(x)
    torch.testing.assert_close(found, exact, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2**-7)])
@pytest.mark.parametrize("vocab", [5, 90, 3000])
def test_the_best_results_of_the_head_are_float32(
    dtype: torch.dtype, tolerance: float, vocab: int
) -> None:
    """Beside bfloat16 the others are as fine as that."""
    x, weight = torch.randn(8, 64), torch.randn(vocab, 64)
    found = Products(dtype).make_head(weight)(x)
    exact = (x.double() @ weight.double().T).float()
    assert found.dtype == torch.float32
    assert (found - exact).abs().max() <= tolerance * exact.abs().max()
    best = found.topk(min(vocab, 4), dim=1)
    torch.testing.assert_close(best.values, exact.gather(1, best.indices))
    assert rows_are_independent(Products(dtype).make_head(weight), 64)
    # A step that only computes a part of a prompt wants no logits.
    assert Products(dtype).make_head(weight)(x[:0]).shape == (0, vocab)


def test_a_packed_form_that_mixes_rows_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where oneDNN's kernels depend on the number of rows, torch's own product is taken."""

    def mixing(weight: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda x: x @ weight.T + len(x)

    monkeypatch.setattr(product, "_pack", mixing)
    x, weight = torch.randn(8, 12), torch.randn(5, 12)
    found = Products(torch.float32).make(weight)(x)
    torch.testing.assert_close(found, x @ weight.T)


def test_the_probe_tells_mixing_from_independent_rows() -> None:
    """One more row that changes the last bit of the others is found."""
    weight = torch.randn(5, 12)
    assert rows_are_independent(lambda x: (x[:, None] * weight).sum(-1), 12)
    assert not rows_are_independent(lambda x: (x[:, None] * weight).sum(-1) + x[-1, 0] * 1e-5, 12)


@pytest.mark.parametrize(
    ("name", "weights", "multiplies", "device", "expected"),
    [
        ("float32", AUTO_BFLOAT16_WEIGHTS, True, "cpu", torch.float32),
        ("bfloat16", 1, False, "cpu", torch.bfloat16),
        ("auto", AUTO_BFLOAT16_WEIGHTS, True, "cpu", torch.bfloat16),
        ("auto", AUTO_BFLOAT16_WEIGHTS - 1, True, "cpu", torch.float32),
        ("auto", AUTO_BFLOAT16_WEIGHTS, False, "cpu", torch.float32),
        ("auto", 1, False, "cuda", torch.bfloat16),
    ],
)
def test_auto_is_bfloat16_where_it_pays(
    name: str,
    weights: int,
    multiplies: bool,
    device: str,
    expected: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a GPU, and for large models on a CPU with the instructions; a stated type is kept."""
    monkeypatch.setattr(product, "cpu_multiplies_bfloat16", lambda: multiplies)
    assert resolve_dtype(name, weights, torch.device(device)) == expected


def test_an_unknown_type_is_named() -> None:
    """The error gives the value and the choices."""
    with pytest.raises(ConfigError, match="dtype is 'int8', expected auto, float32 or bfloat16"):
        resolve_dtype("int8", 1)
