"""Matrix products with constant weights, each in the fastest form that keeps rows independent.

oneDNN can hold a weight in the layout of its kernels. Measured on the largest product of SmolLM2
(an EPYC with AVX512-BF16, torch 2.13, one thread) packed float32 took 0.4 of the time of torch's
own product at 4 rows, 0.6 at 16 and 0.8 at 512, packed bfloat16 0.25, 0.3 and 0.4. The form is
chosen once, never by the number of rows: a row must have the same bits in any company.
"""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

from reference_engine.errors import ConfigError
from reference_engine.model.best import any_best
from reference_engine.model.device import CPU

Product = Callable[[Tensor], Tensor]
"""x [n, in] -> [n, out] in the type that multiplies or float32, whatever that of x is; whoever
reads it computes in float32. Rows are independent if n is a multiple of 4."""

PACKED_WEIGHTS = 100_000
"""Float32 weights with fewer numbers are not packed: for 4 rows of 192 a call of oneDNN took 15 us,
13 of them before it multiplies, and that of torch 7."""
REFINED = 8
"""Tokens of a row whose logits are float32 beside bfloat16 products."""
PROBED_ROWS = (4, 12, 16, 32, 64)
PROBED_MOST = 68
AUTO_BFLOAT16_WEIGHTS = 16_000_000
"""64 MB in float32; fewer weights stay in a cache and gain nothing from being halved."""


def resolve_dtype(name: str, num_weights: int, device: torch.device = CPU) -> torch.dtype:
    """The type that products multiply in: `float32`, `bfloat16`, or what `auto` means here.

    Auto is bfloat16 on a GPU, and on a CPU that multiplies it in hardware for models of at least
    AUTO_BFLOAT16_WEIGHTS. Raises ConfigError for another name.
    """
    match name:
        case "float32":
            return torch.float32
        case "bfloat16":
            return torch.bfloat16
        case "auto":
            large = num_weights >= AUTO_BFLOAT16_WEIGHTS
            pays = device.type != "cpu" or (large and cpu_multiplies_bfloat16())
            return torch.bfloat16 if pays else torch.float32
    raise ConfigError(f"dtype is {name!r}, expected auto, float32 or bfloat16")


def cpu_multiplies_bfloat16() -> bool:
    """Whether this CPU has AVX512-BF16 or AMX; False if this torch can't tell."""
    tests = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, test, bool)() for test in tests)


class Products:
    """Makes the products of one model."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._packing_holds: dict[tuple[torch.Size, torch.dtype], bool] = {}

    def make(
        self, weight: Tensor, bias: Tensor | None = None, dtype: torch.dtype | None = None
    ) -> Product:
        """The product with a float32 weight [out, in]; `dtype` overrides that of the model."""
        dtype = dtype or self._dtype
        converted = weight.to(dtype)
        if weight.device.type == "cuda":
            return _on_gpu(converted, bias)
        small = dtype == torch.float32 and weight.numel() < PACKED_WEIGHTS
        packed = _pack(converted) if weight.device.type == "cpu" and not small else None
        if packed is not None and self._holds(packed, weight.shape, dtype):
            return _with(packed, bias, dtype)
        return _with(lambda x: functional.linear(x, converted), bias, dtype)

    def make_head(self, weight: Tensor) -> Product:
        """The product with the head's weight [vocab, hidden]; its results are float32.

        A bfloat16 logit between 16 and 32 is a multiple of 1/8, so that the best tokens would
        tie. Beside bfloat16 projections on a CPU those are computed again in float32: of SmolLM2's
        49,152 rows both together took 0.6 of the time of a float32 product for 64 states.
        """
        if self._dtype != torch.bfloat16 or weight.device.type != "cpu":
            return self.make(weight, dtype=torch.float32)
        return _refined(self.make(weight), weight)

    def _holds(self, packed: Product, shape: torch.Size, dtype: torch.dtype) -> bool:
        """Whether rows of packed products of this shape are independent, probed once."""
        key = (shape, dtype)
        if key not in self._packing_holds:
            self._packing_holds[key] = rows_are_independent(packed, shape[1], dtype)
        return self._packing_holds[key]


def rows_are_independent(product: Product, size: int, dtype: torch.dtype = torch.float32) -> bool:
    """Whether rows get the same bits among 4 to 64 rows as among 68; x is [n, size]."""
    x = torch.randn(PROBED_MOST, size, generator=torch.Generator().manual_seed(0)).to(dtype)
    whole = product(x)
    return all(torch.equal(product(x[:n]), whole[:n]) for n in PROBED_ROWS)


def _with(product: Product, bias: Tensor | None, dtype: torch.dtype) -> Product:
    """The product with a conversion before it and the bias added in float32."""

    def compute(x: Tensor) -> Tensor:
        out = product(x.to(dtype))
        return out if bias is None else out + bias

    return compute


def _refined(product: Product, weight: Tensor) -> Product:
    """The product with its REFINED largest results of each row computed in float32."""
    most = min(REFINED, weight.shape[0])

    def compute(x: Tensor) -> Tensor:
        out = product(x).float()
        ids = any_best(out, most)
        rows = weight.index_select(0, ids.flatten()).view(len(x), most, weight.shape[1])
        return out.scatter_(1, ids, torch.linalg.vecdot(rows, x[:, None]))

    return compute


def _on_gpu(weight: Tensor, bias: Tensor | None) -> Product:
    """The product without a conversion of its result: on a GPU each would be one more launch.

    Whatever reads it (norms, rotation, attention, gate) computes in float32 in registers.
    """
    bias = None if bias is None else bias.to(weight.dtype)
    return lambda x: functional.linear(x.to(weight.dtype), weight, bias)


def _pack(weight: Tensor) -> Product | None:
    """The product by oneDNN with its weight in blocked layout, None if this torch lacks it."""
    ops = torch.ops.mkldnn
    if not hasattr(ops, "_reorder_linear_weight") or not hasattr(ops, "_linear_pointwise"):
        return None
    if weight.dtype == torch.bfloat16 and not ops._is_mkldnn_bf16_supported():  # noqa: SLF001
        return None
    blocked = ops._reorder_linear_weight(weight)  # noqa: SLF001
    multiply = ops._linear_pointwise.default  # noqa: SLF001

    return lambda x: cast(Tensor, multiply(x, blocked, None, "none", [], ""))
