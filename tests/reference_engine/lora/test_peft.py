"""Comparison with peft, which the engine never imports: a developer installs it.

Besides peft it needs transformers and accelerate.
"""

import dataclasses
import importlib.util

import pytest
import torch

from reference_engine.lora.low_rank import projection_shapes
from reference_engine.lora.peft_directory import read_adapter
from reference_engine.lora.product_memory import ProductMemory
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.load import load_model
from tests.reference_engine.model.build import BLOCK_SIZE, blocks_for, pack

NEEDED = ("peft", "transformers", "accelerate")
pytestmark = [
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, NEEDED)), reason="peft or what it needs is missing"
    ),
    pytest.mark.filterwarnings("default"),
]

SETTINGS = {
    "two projections": {"target_modules": ["q_proj", "v_proj"], "r": 8, "lora_alpha": 16},
    "all": {"target_modules": "all-linear", "r": 4, "lora_alpha": 4, "use_rslora": True},
    "expression": {"target_modules": r".*\.(gate|down)_proj", "r": 2, "lora_alpha": 3},
    "some layers": {"target_modules": ["o_proj"], "layers_to_transform": [0, 2], "r": 3},
    "patterns": {
        "target_modules": ["q_proj", "k_proj", "up_proj"],
        "r": 4,
        "rank_pattern": {"layers.0.self_attn.q_proj": 2, "^model.layers.1.mlp.up_proj": 6},
        "alpha_pattern": {r"self_attn\.(q|k)_proj": 5},
    },
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_logits_equal_those_of_peft(tmp_path, settings):
    """From the files that peft wrote."""
    import peft  # noqa: PLC0415  # not everybody has it

    from tests.reference_engine.oracle import checkpoints  # noqa: PLC0415  # needs transformers

    theirs = checkpoints.random_checkpoint("Llama")
    checkpoints.save(theirs, tmp_path / "base")
    torch.manual_seed(3)
    # Without its usual start, B is random instead of zero.
    adapted = peft.get_peft_model(theirs, peft.LoraConfig(init_lora_weights=False, **settings))
    adapted.eval().save_pretrained(tmp_path / "adapter")
    ids = list(range(5, 90, 3))
    expected = checkpoints.logits(adapted, ids)

    loaded = load_model(str(tmp_path / "base"))
    read = read_adapter(str(tmp_path / "adapter"), projection_shapes(loaded.config), 8)
    memory = ProductMemory()
    memory.put("key", read.weights)
    count = blocks_for(len(ids))
    batch = dataclasses.replace(
        pack([ids], [0], [range(count)]), adapters=memory.hook(["key"], [len(ids)])
    )
    found = loaded.model(batch, KVCache.allocate(loaded.config, count, BLOCK_SIZE))
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=1e-3)
    with adapted.disable_adapter():
        assert not torch.allclose(checkpoints.logits(adapted, ids), expected, atol=1e-2)
