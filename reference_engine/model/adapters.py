"""The seam where adapters change what the projections of a step compute."""

from typing import Protocol

from torch import Tensor


class AdapterHook(Protocol):
    """What one step adds to the outputs of its projections; it knows which rows use what."""

    def __call__(self, x: Tensor, name: str) -> Tensor | None:
        """The addend [n, out] to the float32 result of a projection of x [n, in], or None.

        x is float32 on the CPU and of the type of the products on a GPU.
        name: path of the projection as in checkpoints, `model.layers.0.self_attn.q_proj`; the
        seven of a layer are q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj and down_proj.
        n may exceed the tokens of the batch: the rows at the end are padding.
        """
        ...
