"""Adapters stacked in one tensor for each projection, of which each row takes its own."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from reference_engine.kernels.dispatch import Kernels, kernels_for
from reference_engine.lora.low_rank import AdapterWeights, LowRank, Shapes
from reference_engine.model.adapters import AdapterHook


class Stack:
    """down [places, rank, in], up [places, out, rank] and scales [places] of one projection."""

    def __init__(
        self,
        places: int,
        rank: int,
        shape: tuple[int, int],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        size_in, size_out = shape
        self.size_out = size_out
        self.down = torch.zeros((places, rank, size_in), dtype=dtype, device=device)
        self.up = torch.zeros((places, size_out, rank), dtype=dtype, device=device)
        self.scales = torch.zeros(places, dtype=torch.float32, device=device)

    def write(self, place: int, one: LowRank | None) -> None:
        """Fill a place; zeros beyond the adapter's rank, or everywhere if it lacks this one."""
        for part in (self.down, self.up, self.scales):
            part[place] = 0
        if one is not None:
            self.down[place, : one.rank].copy_(one.down)
            self.up[place, :, : one.rank].copy_(one.up)
            self.scales[place] = one.scale


class StackedMemory:
    """For a GPU. The stacks are made once, of full rank, for the projections that come up."""

    def __init__(self, shapes: Shapes, places: int, rank: int, device: torch.device) -> None:
        self._shapes = shapes
        self._rank = rank
        self._device = device
        self._dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
        self._free = list(reversed(range(places)))
        self._places: dict[str, int] = {}
        self._num_places = places
        self._stacks: dict[str, Stack] = {}

    def put(self, key: str, weights: AdapterWeights) -> None:
        """See AdapterMemory."""
        for name in weights:
            if name not in self._stacks:
                self._stacks[name] = Stack(
                    self._num_places, self._rank, self._shapes[name], self._dtype, self._device
                )
        place = self._places[key] = self._free.pop()
        for name, stack in self._stacks.items():
            stack.write(place, weights.get(name))

    def drop(self, key: str) -> None:
        """See AdapterMemory."""
        self._free.append(self._places.pop(key))

    def hook(self, keys: Sequence[str | None], lengths: Sequence[int]) -> AdapterHook | None:
        """See AdapterMemory."""
        if all(key is None for key in keys):
            return None
        places = [-1 if key is None else self._places[key] for key in keys]
        of_row = torch.tensor(places, dtype=torch.int32)
        of_token = of_row.repeat_interleave(torch.tensor(lengths)).to(self._device)
        return StackedAddends(self._stacks, of_token, kernels_for(self._device))


class StackedAddends:
    """The hook of one step."""

    def __init__(self, stacks: Mapping[str, Stack], places: Tensor, kernels: Kernels) -> None:
        self._stacks = stacks
        self._places = places
        self._kernels = kernels

    def __call__(self, x: Tensor, name: str) -> Tensor | None:
        """See AdapterHook."""
        stack = self._stacks.get(name)
        if stack is None:
            return None
        places = self._places
        if len(places) < len(x):
            places = torch.cat((places, places.new_full((len(x) - len(places),), -1)))
        low = self._kernels.lora_shrink(x, stack.down, places)
        out = torch.zeros((len(x), stack.size_out), dtype=torch.float32, device=x.device)
        self._kernels.lora_expand(out, low, stack.up, stack.scales, places)
        return out
