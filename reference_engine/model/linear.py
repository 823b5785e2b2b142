"""The projections of the layers: weights under their names, products of several at once."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference_engine.model.adapters import AdapterHook
from reference_engine.model.product import Product, Products


class Linear(nn.Module):
    """Weight [out, in] and bias of one projection; `Projections` computes it."""

    def __init__(self, in_features: int, out_features: int, *, bias: bool = False) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = nn.Parameter(torch.zeros(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None
        self.name = ""
        """Path in the model, by which adapters know it."""

    def release(self) -> None:
        """Let go of the weights; a prepared product has a copy."""
        del self.weight
        self.bias = None


class Projections:
    """One or more projections of the same input, computed as one product once prepared."""

    def __init__(self, *parts: Linear) -> None:
        self._parts = parts
        self._sizes = [part.out_features for part in parts]
        self._product: Product | None = None

    def prepare(self, products: Products) -> None:
        """Copy the weights into one product and release them; nothing happens the second time."""
        if self._product is not None:
            return
        biases = [part.bias for part in self._parts if part.bias is not None]
        self._product = products.make(
            torch.cat([part.weight.detach() for part in self._parts]),
            torch.cat([bias.detach() for bias in biases]) if biases else None,
        )
        for part in self._parts:
            part.release()

    def __call__(self, x: Tensor, adapters: AdapterHook | None = None) -> tuple[Tensor, ...]:
        """X [n, in] -> one [n, out] a part, which may be a view with gaps between its rows."""
        if self._product is None:
            outs = tuple(functional.linear(x, part.weight, part.bias) for part in self._parts)
        else:
            outs = tuple(self._product(x).split_with_sizes(self._sizes, dim=-1))
        if adapters is None:
            return outs
        return tuple(
            _adapted(x, out, part.name, adapters)
            for part, out in zip(self._parts, outs, strict=True)
        )


def _adapted(x: Tensor, out: Tensor, name: str, adapters: AdapterHook) -> Tensor:
    """Add in place: a new tensor would lie in memory otherwise than one without an addend, and
    what reads it (SiLU) differs in the last bit between the two.
    """
    addend = adapters(x, name)
    return out if addend is None else out.add_(addend)
