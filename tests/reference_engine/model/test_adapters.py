import dataclasses

import pytest
import torch
from torch import Tensor

from reference_engine.model.kv_cache import KVCache
from reference_engine.model.llama import Llama
from tests.reference_engine.model.build import BLOCK_SIZE, config, pack, random_model, run_alone

IDS = [3, 1, 4, 1, 5, 9]


class Recorder:
    """Adds `scale` times a fixed low-rank product to the projections of one name."""

    def __init__(self, target: str, low: Tensor) -> None:
        self.target = target
        self.low = low
        self.seen: list[tuple[str, torch.Size]] = []

    def __call__(self, x: Tensor, name: str) -> Tensor | None:
        self.seen.append((name, x.shape))
        return x @ self.low.T if name == self.target else None


def run_with(model: Llama, hook: Recorder) -> Tensor:
    blocks = range(-(-len(IDS) // BLOCK_SIZE))
    batch = dataclasses.replace(pack([IDS], [0], [blocks]), adapters=hook)
    logits: Tensor = model(batch, KVCache.allocate(model.config, len(blocks), BLOCK_SIZE))
    return logits


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ("self_attn.q_proj", (48, 24)),
        ("self_attn.k_proj", (16, 24)),
        ("self_attn.v_proj", (16, 24)),
        ("self_attn.o_proj", (24, 48)),
        ("mlp.gate_proj", (40, 24)),
        ("mlp.up_proj", (40, 24)),
        ("mlp.down_proj", (24, 40)),
    ],
)
def test_an_addend_acts_like_a_changed_weight(
    target: str, shape: tuple[int, int], *, prepared: bool
) -> None:
    """For each of the seven projections, as separate and as joint products."""
    name = f"model.layers.1.{target}"
    low = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 0.3
    changed = random_model(config())
    changed.get_parameter(f"{name}.weight").data += low
    model = random_model(config())
    plain = run_alone(model, IDS)
    if prepared:
        model.prepare()
    found = run_with(model, Recorder(name, low))
    torch.testing.assert_close(found, run_alone(changed, IDS), atol=1e-4, rtol=1e-4)
    assert (found - plain).abs().max() > 1e-2


def test_the_hook_sees_every_projection_by_its_path() -> None:
    """Seven a layer with the names of checkpoints, rows padded to a multiple of 4."""
    model = random_model(config()).prepare()
    hook = Recorder("", torch.zeros(()))
    run_with(model, hook)
    stored = random_model(config()).state_dict()
    assert sorted(name for name, _ in hook.seen) == sorted(
        name.removesuffix(".weight") for name in stored if name.endswith("_proj.weight")
    )
    assert {shape[0] for _, shape in hook.seen} == {8}
