"""Adapters as plain products: those of one adapter are computed for all its rows at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from reference_engine.lora.low_rank import AdapterWeights
from reference_engine.model.adapters import AdapterHook
from reference_engine.model.tiles import ROW_MULTIPLE


@dataclass(frozen=True, slots=True)
class Addend:
    """Both matrices of one projection; the scale is part of the second.

    They stay as they are: packing as the base's weights are packed took half a second for all of
    SmolLM2, during which no step runs, and gained nothing for products this thin.
    """

    down: Tensor
    up: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """X [n, in] -> [n, out], n a multiple of ROW_MULTIPLE."""
        return functional.linear(functional.linear(x.float(), self.down), self.up)


Addends = Mapping[str, Addend]


class ProductMemory:
    """For a CPU. A row's addend has the same bits whatever other rows there are."""

    def __init__(self) -> None:
        self._adapters: dict[str, Addends] = {}

    def put(self, key: str, weights: AdapterWeights) -> None:
        """See AdapterMemory."""
        self._adapters[key] = {
            name: Addend(one.down, one.up * one.scale) for name, one in weights.items()
        }

    def drop(self, key: str) -> None:
        """See AdapterMemory."""
        del self._adapters[key]

    def hook(self, keys: Sequence[str | None], lengths: Sequence[int]) -> AdapterHook | None:
        """See AdapterMemory."""
        places: dict[str, list[int]] = {}
        start = 0
        for key, length in zip(keys, lengths, strict=True):
            if key is not None:
                places.setdefault(key, []).extend(range(start, start + length))
            start += length
        if not places:
            return None
        for key, at in places.items():
            if len(at) == start:
                return SharedAddends(self._adapters[key])
        return GroupedAddends([_group(self._adapters[key], at) for key, at in places.items()])


class SharedAddends:
    """The hook of a step whose rows all have the same adapter."""

    def __init__(self, addends: Addends) -> None:
        self._addends = addends

    def __call__(self, x: Tensor, name: str) -> Tensor | None:
        """See AdapterHook."""
        addend = self._addends.get(name)
        return None if addend is None else addend(x)


@dataclass(frozen=True, slots=True)
class Group:
    """The tokens of a step that use one adapter, `padded` to a multiple by the first of them."""

    addends: Addends
    tokens: Tensor
    padded: Tensor


def _group(addends: Addends, places: list[int]) -> Group:
    missing = -len(places) % ROW_MULTIPLE
    return Group(addends, torch.tensor(places), torch.tensor(places + places[:1] * missing))


class GroupedAddends:
    """The hook of a step whose rows have several adapters, or some of them none."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups

    def __call__(self, x: Tensor, name: str) -> Tensor | None:
        """See AdapterHook."""
        total: Tensor | None = None
        for group in self._groups:
            addend = group.addends.get(name)
            if addend is None:
                continue
            if total is None:
                total = addend.up.new_zeros((x.shape[0], addend.up.shape[0]))
            part = addend(x[group.padded])
            total.index_copy_(0, group.tokens, part[: len(group.tokens)])
        return total
