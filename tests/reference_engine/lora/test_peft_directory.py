import json
import math

import pytest
import torch
from safetensors.torch import save_file

from reference_engine.errors import AdapterError, UnsupportedAdapterError
from reference_engine.lora.peft_directory import read_adapter
from tests.reference_engine.lora.build import ALL, SHAPES, random_tensors, write_adapter

Q0 = "model.layers.0.self_attn.q_proj"
Q0_A = f"base_model.model.{Q0}.lora_A.weight"
Q0_B = f"base_model.model.{Q0}.lora_B.weight"


def read(directory, max_rank=16):
    return read_adapter(str(directory), SHAPES, max_rank).weights


def test_every_projection_is_read_with_its_scale(tmp_path):
    """Values, shapes and alpha / r come through."""
    weights = read(write_adapter(tmp_path))
    assert set(weights) == set(SHAPES)
    tensors = random_tensors()
    assert torch.equal(weights[Q0].down, tensors[Q0_A])
    assert torch.equal(weights[Q0].up, tensors[Q0_B])
    assert weights[Q0].scale == 2.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_weights_become_float32(tmp_path, dtype):
    """The numbers are those that the file holds."""
    tensors = {name: one.to(dtype) for name, one in random_tensors().items()}
    found = read(write_adapter(tmp_path, tensors))[Q0].down
    assert found.dtype == torch.float32
    assert torch.equal(found, tensors[Q0_A].float())


@pytest.mark.parametrize(
    ("targets", "config", "names"),
    [
        (("q_proj", "v_proj"), {"target_modules": ["q_proj", "v_proj"]}, 4),
        (("layers.1.mlp.up_proj",), {"target_modules": ["layers.1.mlp.up_proj"]}, 1),
        (ALL, {"target_modules": "all-linear"}, 14),
        (("q_proj", "k_proj"), {"target_modules": r".*self_attn\.(q|k)_proj"}, 4),
        (
            ("q_proj", "v_proj"),
            {"target_modules": r"(?:.*?(?:self_attn|mlp).*?(?:q_proj|v_proj).*?)"},
            4,
        ),
        (
            ("layers.1.self_attn.q_proj",),
            {"target_modules": ["q_proj"], "layers_to_transform": 1},
            1,
        ),
        (("q_proj",), {"target_modules": ["q_proj"], "layers_to_transform": [0, 1]}, 2),
        (("q_proj",), {"target_modules": ["q_proj", "o_proj"], "exclude_modules": ["o_proj"]}, 2),
        (("q_proj",), {"target_modules": ["q_proj", "o_proj"], "exclude_modules": ".*o_.*"}, 2),
    ],
)
def test_the_ways_to_name_modules(tmp_path, targets, config, names):
    """The modules that the configuration names are those that are read."""
    weights = read(write_adapter(tmp_path, random_tensors(targets=targets), **config))
    assert len(weights) == names
    assert all(name.endswith(targets) for name in weights)


def test_patterns_change_rank_and_alpha(tmp_path):
    """The first key that matches the end of a path counts; anchored keys are full paths."""
    v1 = "model.layers.1.self_attn.v_proj"
    directory = write_adapter(
        tmp_path,
        random_tensors(ranks={Q0: 2, v1: 8}),
        rank_pattern={"layers.0.self_attn.q_proj": 2, f"^{v1}": 8, "0.self_attn.q_proj": 3},
        alpha_pattern={r"self_attn\.(q|k)_proj": 6},
    )
    weights = read(directory)
    assert (weights[Q0].rank, weights[Q0].scale) == (2, 3.0)
    assert (weights[v1].rank, weights[v1].scale) == (8, 1.0)
    assert weights["model.layers.0.self_attn.k_proj"].scale == 1.5
    assert weights["model.layers.0.mlp.up_proj"].scale == 2.0


def test_rank_stabilised_scale(tmp_path):
    """use_rslora divides by the root of the rank."""
    weights = read(write_adapter(tmp_path, use_rslora=True))
    assert weights[Q0].scale == 8 / math.sqrt(4)


UNSUPPORTED = {
    "DoRA": {"use_dora": True},
    "bias": {"bias": "all"},
    "bias of B": {"lora_bias": True},
    "whole modules": {"modules_to_save": ["lm_head"]},
    "parameters": {"target_parameters": ["x"]},
    "tokens": {"trainable_token_indices": [1]},
    "other layers": {"layer_replication": [[0, 1]]},
    "unknown variant": {"use_something_new": True},
    "transposed": {"fan_in_fan_out": True},
    "quantised base": {"loftq_config": {"loftq_bits": 4}},
    "changed base": {"init_lora_weights": "pissa_niter_16"},
    "rank above the limit": {"r": 17},
    "rank of a pattern": {"rank_pattern": {"up_proj": 99}},
    "another method": {"peft_type": "IA3"},
    "no method": {"peft_type": None},
    "head": {"target_modules": ["q_proj", "lm_head"]},
    "repeated group": {"target_modules": "(a+)+b"},
    "many repeats": {"target_modules": ".*.*.*.*.*.*q_proj"},
}
MALFORMED = {
    "no rank": {"r": None},
    "rank 0": {"r": 0},
    "rank of a boolean": {"r": True},
    "no alpha": {"lora_alpha": None},
    "alpha without end": {"lora_alpha": math.inf},
    "no targets": {"target_modules": None},
    "empty targets": {"target_modules": []},
    "numbers as targets": {"target_modules": [1]},
    "nothing matches": {"target_modules": "nothing"},
    "all excluded": {"exclude_modules": ".*"},
    "broken expression": {"target_modules": "(q_proj"},
    "layers": {"layers_to_transform": "all"},
    "no such layer": {"layers_to_transform": [7]},
    "patterns": {"rank_pattern": [1]},
    "rank that disagrees": {"r": 5},
    "fewer targets than tensors": {"target_modules": ["q_proj"]},
}


@pytest.mark.parametrize("config", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_unsupported_configurations(tmp_path, config):
    """What would compute something else is refused as unsupported."""
    with pytest.raises(UnsupportedAdapterError, match=r"adapter_config\.json"):
        read(write_adapter(tmp_path, **config))


@pytest.mark.parametrize("config", MALFORMED.values(), ids=MALFORMED)
def test_malformed_configurations(tmp_path, config):
    """What makes no sense is refused, but not as unsupported."""
    with pytest.raises(AdapterError) as caught:
        read(write_adapter(tmp_path, **config))
    assert type(caught.value) is AdapterError


def changed(name, tensor):
    tensors = random_tensors()
    if tensor is None:
        del tensors[name]
    else:
        tensors[name] = tensor
    return tensors


@pytest.mark.parametrize(
    ("tensors", "text"),
    [
        (
            changed(Q0_A, torch.zeros(4, 15)),
            r"lora_A.weight has shape \[4, 15\], expected \[4, 16\]",
        ),
        (changed(Q0_A, torch.zeros(3, 16)), r"expected \[4, 16\]"),
        (changed(Q0_B, torch.zeros(16)), r"expected \[16, 4\]"),
        (changed(Q0_B, None), r"lora_B.weight is missing"),
        (changed(Q0_A, torch.full((4, 16), math.nan)), r"not finite"),
        (changed(Q0_B, torch.full((16, 4), math.inf)), r"not finite"),
        (changed(Q0_A, torch.zeros(4, 16, dtype=torch.int8)), r"torch.int8, supported"),
        (changed("base_model.model.lm_head.lora_A.weight", torch.zeros(1)), r"no place"),
        (changed(Q0_A.replace("lora_A.", "lora_magnitude_vector."), torch.zeros(1)), r"no place"),
        (changed("big", torch.zeros(1024, 1024)), r"too large"),
    ],
)
def test_bad_tensors(tmp_path, tensors, text):
    """The tensor is named."""
    with pytest.raises(AdapterError, match=text):
        read(write_adapter(tmp_path, tensors))


def test_bad_paths(tmp_path, monkeypatch):
    """Not absolute, missing, a file, or nothing in it."""
    file = tmp_path / "file"
    file.write_text("{}")
    write_adapter(tmp_path / "relative")
    monkeypatch.chdir(tmp_path)
    for path in ("", "relative", "/no/such/directory", str(file), str(tmp_path), "/\0"):
        with pytest.raises(AdapterError):
            read_adapter(path, SHAPES, 16)


def test_a_root_keeps_callers_inside(tmp_path):
    """Directories below it are read, also over links; what leads out of it is not."""
    root = tmp_path / "root"
    inside = write_adapter(root / "inside")
    outside = write_adapter(tmp_path / "outside")
    (root / "x").mkdir()
    (root / "link").symlink_to(outside)
    (root / "loop").symlink_to(root / "loop")
    (tmp_path / "way in").symlink_to(root)
    for path in (inside, tmp_path / "way in" / "inside", root / "x" / ".." / "inside"):
        assert read_adapter(str(path), SHAPES, 16, root).weights
    for path in (outside, root / ".." / "outside", root / "link", root / "loop", "/\0"):
        with pytest.raises(AdapterError):
            read_adapter(str(path), SHAPES, 16, root)
    with pytest.raises(AdapterError, match="outside of where"):
        read_adapter("/etc", SHAPES, 16, root)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_bad_json(tmp_path, content):
    """A configuration that is no JSON object."""
    (write_adapter(tmp_path) / "adapter_config.json").write_bytes(content)
    with pytest.raises(AdapterError, match=r"adapter_config\.json"):
        read(tmp_path)


@pytest.mark.parametrize("keep", [0, 7, 100, -1])
def test_truncated_weights(tmp_path, keep):
    """A file that ends early."""
    path = write_adapter(tmp_path) / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(AdapterError, match="damaged or truncated"):
        read(tmp_path)


def test_pickled_weights_are_not_read(tmp_path):
    """The message says why."""
    path = write_adapter(tmp_path) / "adapter_model.safetensors"
    path.rename(tmp_path / "adapter_model.bin")
    with pytest.raises(AdapterError, match="unpickling runs code"):
        read(tmp_path)


def test_the_digest_is_of_the_content(tmp_path):
    """Equal files have equal digests, whatever their directory; a changed one differs."""
    first = read_adapter(str(write_adapter(tmp_path / "a")), SHAPES, 16)
    second = read_adapter(str(write_adapter(tmp_path / "b")), SHAPES, 16)
    third = read_adapter(str(write_adapter(tmp_path / "c", seed=2)), SHAPES, 16)
    assert first.digest == second.digest != third.digest
    config = json.loads((tmp_path / "b" / "adapter_config.json").read_text())
    (tmp_path / "b" / "adapter_config.json").write_text(json.dumps({**config, "lora_alpha": 9}))
    assert read_adapter(str(tmp_path / "b"), SHAPES, 16).digest != first.digest


def test_no_tensors_at_all(tmp_path):
    """An empty file of tensors lacks the first."""
    save_file({}, write_adapter(tmp_path) / "adapter_model.safetensors")
    with pytest.raises(AdapterError, match="is missing"):
        read(tmp_path)
