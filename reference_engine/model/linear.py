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

    def __call__(self, x: Tensor, adapters: AdapterHook | None = None) -> Tensor:
        """X [n, in] -> [n, out of all parts], one part behind the other."""
        if self._product is None:
            parts = [functional.linear(x, part.weight, part.bias) for part in self._parts]
            out = torch.cat(parts, dim=-1)
        else:
            out = self._product(x)
        if adapters is not None:
            self._adapt(x, out, adapters)
        return out

    def _adapt(self, x: Tensor, out: Tensor, adapters: AdapterHook) -> None:
        parts = out.split_with_sizes(self._sizes, dim=-1)
        for part, view in zip(self._parts, parts, strict=True):
            addend = adapters(x, part.name)
            if addend is not None:
                view.add_(addend)
