"""An adapter acts like its product added to the base's weights, in any company."""

import dataclasses
from functools import partial

import pytest
import torch

from reference_engine.lora.low_rank import from_arrays, to_arrays
from reference_engine.lora.peft_directory import read_adapter
from reference_engine.lora.product_memory import ProductMemory
from reference_engine.lora.stacked_memory import StackedMemory
from reference_engine.model.kv_cache import KVCache
from tests.reference_engine.engine.fakes import CONFIG, random_model
from tests.reference_engine.lora.build import SHAPES, merge, random_tensors, write_adapter
from tests.reference_engine.model.build import BLOCK_SIZE, blocks_for, pack

PROMPTS = [list(b"some text"), list(b"abc"), list(b"the third"), [7], list(b"fifth, longer text")]
STACKED = partial(StackedMemory, SHAPES, 4, 8, torch.device("cpu"))


@pytest.fixture(scope="module")
def adapters(tmp_path_factory):
    """Three: all projections, two of them, and one layer with another rank and scale."""
    root = tmp_path_factory.mktemp("adapters")
    one = "layers.1.mlp.down_proj"
    directories = [
        write_adapter(root / "a"),
        write_adapter(
            root / "b",
            random_tensors(targets=("q_proj", "v_proj"), rank=8, seed=2),
            r=8,
            target_modules=["q_proj", "v_proj"],
        ),
        write_adapter(
            root / "c",
            random_tensors(targets=(one,), rank=1, seed=3),
            r=1,
            lora_alpha=4,
            target_modules=[one],
        ),
    ]
    return [read_adapter(str(one), SHAPES, 8).weights for one in directories]


def filled(memory, adapters):
    for number, weights in enumerate(adapters):
        memory.put(str(number), weights)
    return memory


def logits(model, memory, prompts, keys):
    """Logits of every position, one tensor a row."""
    starts, tables = 0, []
    for prompt in prompts:
        count = blocks_for(len(prompt))
        tables.append(range(starts, starts + count))
        starts += count
    batch = pack(prompts, [0] * len(prompts), tables)
    lengths = [len(prompt) for prompt in prompts]
    batch = dataclasses.replace(batch, adapters=memory.hook(keys, lengths))
    out = model(batch, KVCache.allocate(CONFIG, starts, BLOCK_SIZE))
    return out.split(lengths)


@pytest.mark.parametrize("make", [ProductMemory, STACKED], ids=["products", "stacks"])
@pytest.mark.parametrize("prepared", [True, False])
def test_like_merged_weights(adapters, make, prepared):
    """Alone and in a batch of all, logits are those of the base with the product added."""
    memory = filled(make(), adapters)
    model = random_model().prepare() if prepared else random_model()
    keys = ["0", "1", "2", None, "0"]
    mixed = logits(model, memory, PROMPTS, keys)
    for row, (prompt, key) in enumerate(zip(PROMPTS, keys, strict=True)):
        base = random_model()
        merged = base if key is None else merge(base, adapters[int(key)])
        (expected,) = logits(merged, memory, [prompt], [None])
        (alone,) = logits(model, memory, [prompt], [key])
        torch.testing.assert_close(alone, expected, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(mixed[row], expected, atol=1e-4, rtol=1e-4)
        (plain,) = logits(model, memory, [prompt], [None])
        assert (key is None) == torch.allclose(alone, plain, atol=1e-2)


def test_bits_do_not_depend_on_the_company(adapters):
    """A row has the same bits alone and next to rows of its own and of other adapters."""
    memory = filled(ProductMemory(), adapters)
    model = random_model().prepare()
    keys = ["0", "1", "2", None, "0", "0", "0", "1", None]
    prompts = [*PROMPTS, list(b"sixth"), list(b"7"), list(b"eighth row"), list(b"ninth")]
    mixed = logits(model, memory, prompts, keys)
    for row, (prompt, key) in enumerate(zip(prompts, keys, strict=True)):
        (alone,) = logits(model, memory, [prompt], [key])
        assert torch.equal(alone, mixed[row])


@pytest.mark.parametrize("make", [ProductMemory, STACKED], ids=["products", "stacks"])
def test_a_place_is_used_again(adapters, make):
    """What a dropped adapter changed is gone; the next one in its place has only its own."""
    memory = filled(make(), adapters)
    model = random_model()
    for key in "012":
        memory.drop(key)
    assert memory.hook([None, None], [3, 4]) is None
    with pytest.raises(KeyError):
        memory.hook(["0"], [3])
    for number in range(4):
        memory.put(f"new {number}", adapters[2])
    (found,) = logits(model, memory, PROMPTS[:1], ["new 3"])
    (expected,) = logits(merge(random_model(), adapters[2]), memory, PROMPTS[:1], [None])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_weights_travel_as_arrays(adapters):
    """The way to another process changes nothing."""
    again = from_arrays(to_arrays(adapters[0]))
    assert again.keys() == adapters[0].keys()
    for name, one in adapters[0].items():
        assert torch.equal(again[name].down, one.down)
        assert torch.equal(again[name].up, one.up)
        assert again[name].scale == one.scale
