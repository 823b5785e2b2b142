import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from reference_engine.errors import (
    CheckpointError,
    ModelError,
    ModelNotFoundError,
    UnsupportedModelError,
)
from reference_engine.model.byte_tokens import byte_alphabet
from reference_engine.model.llama import Llama
from reference_engine.model.load import load_model
from reference_engine.model.load_hf import load_hf
from reference_engine.model.rope import LinearScaling, Llama3Scaling, RopeScaling
from tests.reference_engine.model.build import config, random_model, run_alone


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


def edit_json(path: Path, **changes: object) -> None:
    """Change fields of a JSON file; None removes."""
    value: dict[str, Any] = {**json.loads(path.read_text()), **changes}
    write_json(path, {name: item for name, item in value.items() if item is not None})


def write_tokenizer(path: Path) -> None:
    tokenizer = Tokenizer(
        models.BPE(vocab={c: i for i, c in enumerate(byte_alphabet())}, merges=[])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.save(str(path))


def write_model(directory: Path, model: Llama) -> Path:
    """A directory as Hugging Face writes it."""
    shape = model.config
    fields = {
        "architectures": [shape.architecture],
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": shape.rms_norm_eps,
        "rope_theta": shape.rope_theta,
        "max_position_embeddings": shape.max_position_embeddings,
        "tie_word_embeddings": shape.tie_word_embeddings,
        "bos_token_id": 256,
        "eos_token_id": 257,
    }
    write_json(directory / "config.json", fields)
    save_file(model.state_dict(), directory / "model.safetensors")
    write_tokenizer(directory / "tokenizer.json")
    return directory


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8,
    "low_freq_factor": 1,
    "high_freq_factor": 4,
    "original_max_position_embeddings": 64,
}


@pytest.fixture
def model() -> Llama:
    return random_model(config(vocab_size=260))


@pytest.fixture
def directory(tmp_path: Path, model: Llama) -> Path:
    return write_model(tmp_path, model)


@pytest.mark.parametrize("tied", [True, False])
def test_a_written_model_is_read_back(tmp_path: Path, tied: bool) -> None:
    """Configuration and logits survive, with a tied head and with one of its own."""
    model = random_model(config(vocab_size=260, tie_word_embeddings=tied))
    loaded = load_model(str(write_model(tmp_path, model)))
    assert loaded.name == tmp_path.name
    assert loaded.config == config(
        vocab_size=260, tie_word_embeddings=tied, eos_token_ids=(257,), bos_token_id=256
    )
    assert torch.equal(run_alone(loaded.model, range(20)), run_alone(model.prepare(), range(20)))
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())


def test_a_stored_copy_of_a_tied_head_is_not_needed(directory: Path, model: Llama) -> None:
    """Checkpoints that store the tied head, or old rotary buffers, load all the same."""
    extra = {
        "lm_head.weight": torch.zeros(260, 24),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
    }
    save_file({**model.state_dict(), **extra}, directory / "model.safetensors")
    assert torch.equal(run_alone(load_hf(directory)[0], range(5)), run_alone(model, range(5)))


def test_weights_in_several_files_are_joined(directory: Path, model: Llama) -> None:
    """An index that spreads the tensors over two files is followed."""
    names = sorted(model.state_dict())
    parts = {"a.safetensors": names[:7], "b.safetensors": names[7:]}
    for file, part in parts.items():
        save_file({name: model.state_dict()[name] for name in part}, directory / file)
    (directory / "model.safetensors").unlink()
    index = {name: file for file, part in parts.items() for name in part}
    write_json(directory / "model.safetensors.index.json", {"weight_map": index})
    assert torch.equal(run_alone(load_hf(directory)[0], range(5)), run_alone(model, range(5)))
    (directory / "b.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"b\.safetensors: no such file"):
        load_hf(directory)


def test_half_precision_is_widened(directory: Path, model: Llama) -> None:
    """Weights in bfloat16 become float32 with their exact values."""
    stored = {name: value.bfloat16() for name, value in model.state_dict().items()}
    save_file(stored, directory / "model.safetensors")
    loaded = load_hf(directory)[0].state_dict()
    for name, value in stored.items():
        assert loaded[name].dtype == torch.float32
        assert torch.equal(loaded[name], value.float())


def test_end_tokens_of_generation_config_win(directory: Path) -> None:
    """A list in generation_config.json replaces the single id of config.json."""
    write_json(directory / "generation_config.json", {"eos_token_id": [257, 3]})
    _, tokenizer, shape = load_hf(directory)
    assert shape.eos_token_ids == (257, 3)
    assert tokenizer.eos_token_ids == {257, 3}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("rope_parameters", {"rope_type": "default", "rope_theta": 500000.0}),
        ("rope_scaling", {"type": "default", "rope_theta": 500000}),
    ],
)
def test_rope_theta_is_found_in_newer_files(directory: Path, place: str, value: object) -> None:
    """The base may stand in an object of its own."""
    edit_json(directory / "config.json", rope_theta=None, **{place: value})
    assert load_hf(directory)[2].rope_theta == 500000.0


@pytest.mark.parametrize("place", ["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"rope_type": "linear", "factor": 2}, LinearScaling(2.0)),
        ({"type": "linear", "factor": 2.5}, LinearScaling(2.5)),
        (LLAMA3, Llama3Scaling(8.0, 1.0, 4.0, 64)),
        ({"rope_type": "default"}, None),
    ],
)
def test_rope_scaling_is_read(
    directory: Path, place: str, value: object, expected: RopeScaling | None
) -> None:
    """Both spellings of both kinds, with the base beside them."""
    edit_json(directory / "config.json", rope_theta=5e5, **{place: value})
    shape = load_hf(directory)[2]
    assert shape.rope_scaling == expected
    assert shape.rope_theta == 5e5


@pytest.mark.parametrize(
    ("name", "extra", "expected"),
    [
        ("LlamaForCausalLM", {}, {}),
        ("LlamaForCausalLM", {"attention_bias": True}, {"qkv_bias": True, "output_bias": True}),
        (
            "Qwen2ForCausalLM",
            {"sliding_window": 9, "use_sliding_window": False},
            {"qkv_bias": True},
        ),
        ("Qwen2ForCausalLM", {"sliding_window": 9, "attention_bias": True}, {"qkv_bias": True}),
        ("Qwen3ForCausalLM", {"layer_types": ["full_attention"] * 2}, {"qk_norm": True}),
    ],
)
def test_every_architecture_has_its_parts(
    tmp_path: Path, name: str, extra: dict[str, object], expected: dict[str, bool]
) -> None:
    """Biases and norms follow from the architecture; unused windows are no obstacle."""
    shape = config(vocab_size=260, architecture=name, **expected)
    model = random_model(shape)
    write_model(tmp_path, model)
    edit_json(tmp_path / "config.json", **extra)
    loaded, _, found = load_hf(tmp_path)
    assert found == dataclasses.replace(shape, eos_token_ids=(257,), bos_token_id=256)
    assert torch.equal(run_alone(loaded, range(20)), run_alone(model, range(20)))


def test_qwen3_heads_have_128_components_by_default(directory: Path) -> None:
    """Without head_dim it isn't hidden_size / num_attention_heads, unlike the other two."""
    edit_json(directory / "config.json", architectures=["Qwen3ForCausalLM"], head_dim=None)
    with pytest.raises(CheckpointError, match=r"expected \[(768|256), 24\]"):
        load_hf(directory)


def test_only_llama_may_leave_out_its_key_value_heads(tmp_path: Path) -> None:
    """Llama then has as many as attention heads; for others the field is missing."""
    write_model(tmp_path, random_model(config(vocab_size=260, num_kv_heads=6)))
    edit_json(tmp_path / "config.json", num_key_value_heads=None)
    assert load_hf(tmp_path)[2].num_kv_heads == 6
    edit_json(tmp_path / "config.json", architectures=["Qwen2ForCausalLM"])
    with pytest.raises(CheckpointError, match="num_key_value_heads is missing"):
        load_hf(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("architectures", ["GPTNeoXForCausalLM"], "architectures is .'GPTNeoXForCausalLM'."),
        ("architectures", None, "architectures is None"),
        ("hidden_act", "gelu", "hidden_act is 'gelu'"),
        ("mlp_bias", True, "mlp_bias is true"),
        ("quantization_config", {"bits": 4}, "quantization_config is set"),
        ("rope_scaling", {"rope_type": "yarn"}, "rope_scaling.rope_type is 'yarn'"),
        ("rope_scaling", {"type": "dynamic"}, "rope_scaling.rope_type is 'dynamic'"),
        ("rope_parameters", {"full_attention": {"rope_theta": 1.0}}, "differs by kind of layer"),
        ("partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5"),
        ("rope_parameters", {"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
        ("sliding_window", 4096, "sliding_window is 4096 and in use"),
        ("use_sliding_window", True, "sliding_window is None and in use"),
        ("layer_types", ["full_attention", "sliding_attention"], "layer_types is"),
    ],
)
def test_what_would_run_wrongly_is_refused(
    directory: Path, field: str, value: object, expected: str
) -> None:
    """An unsupported model is refused with the field and its value."""
    edit_json(directory / "config.json", **{field: value})
    with pytest.raises(UnsupportedModelError, match=expected):
        load_hf(directory)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("hidden_size", None, "hidden_size is missing"),
        ("hidden_size", "24", "hidden_size is '24'"),
        ("hidden_size", True, "hidden_size is True"),
        ("hidden_size", 28, "expected .* by the config"),
        ("num_hidden_layers", 0, "num_hidden_layers is 0"),
        ("num_hidden_layers", 10**9, "1000000000 layers"),
        ("num_hidden_layers", 3, "9 of 29 tensors are missing"),
        ("num_hidden_layers", 1, r"layers\.1\.\S+ has no place"),
        ("num_key_value_heads", 4, "can't share"),
        ("head_dim", 7, "head_dim is 7"),
        ("rms_norm_eps", -1, "rms_norm_eps is -1"),
        ("rope_theta", "big", "rope_theta is 'big'"),
        ("rope_scaling", "yarn", "rope_scaling is 'yarn'"),
        ("rope_scaling", {"type": "linear"}, "rope_scaling: factor is missing"),
        ("rope_scaling", {"rope_type": "llama3", "factor": 8}, "low_freq_factor is missing"),
        ("rope_scaling", {**LLAMA3, "high_freq_factor": 1}, "high_freq_factor is 1.0, expected"),
        ("attention_bias", "yes", "attention_bias is 'yes'"),
        ("attention_bias", True, "the first is .*bias"),
        ("tie_word_embeddings", 1, "tie_word_embeddings is 1"),
        ("tie_word_embeddings", False, r"the first is lm_head\.weight"),
        ("eos_token_id", 260, "eos_token_id 260"),
        ("eos_token_id", [1, "x"], "eos_token_id is"),
        ("vocab_size", 257, "eos_token_id 257 is not below vocab_size 257"),
    ],
)
def test_a_wrong_field_is_named(directory: Path, field: str, value: object, expected: str) -> None:
    """A field that is missing, of a wrong type or against the weights is named."""
    edit_json(directory / "config.json", **{field: value})
    with pytest.raises(CheckpointError, match=expected):
        load_hf(directory)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(directory: Path, file: str) -> None:
    """Without one of the three files the error gives its path."""
    (directory / file).unlink()
    with pytest.raises(CheckpointError, match=f"{file}: no such file"):
        load_hf(directory)


@pytest.mark.parametrize(
    ("file", "damage", "expected"),
    [
        ("config.json", lambda raw: raw[:50], "can't be read as JSON"),
        ("config.json", lambda raw: b"[1]", "expected a JSON object"),
        ("config.json", lambda raw: b"\xff\xfe", "can't be read as JSON"),
        ("tokenizer.json", lambda raw: raw[:50], "not a tokenizer"),
        ("model.safetensors", lambda raw: raw[:-100], "damaged or truncated"),
        ("model.safetensors", lambda raw: raw[:4], "damaged or truncated"),
        ("model.safetensors", lambda raw: b"", "damaged or truncated"),
    ],
)
def test_a_damaged_file_is_named(
    directory: Path, file: str, damage: Callable[[bytes], bytes], expected: str
) -> None:
    """Cut or foreign content gives an error with the path of the file."""
    path = directory / file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=f"{file}: .*{expected}|{file}: {expected}"):
        load_hf(directory)


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.ones(25), r"has shape \[25\], expected \[24\]"),
        (torch.ones(24, dtype=torch.int32), "int32, expected floats"),
        (torch.full((24,), torch.nan), "not finite"),
    ],
)
def test_a_wrong_tensor_is_named(
    directory: Path, model: Llama, tensor: torch.Tensor, expected: str
) -> None:
    """A tensor of a wrong shape, of integers or with NaN is named."""
    weights = {**model.state_dict(), "model.norm.weight": tensor}
    save_file(weights, directory / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"model.norm.weight .*{expected}"):
        load_hf(directory)


@pytest.mark.parametrize("value", ["template {{ x", 7])
def test_a_wrong_chat_template_is_refused(directory: Path, value: object) -> None:
    """A template that is no Jinja or no text is found when the model is loaded."""
    write_json(directory / "tokenizer_config.json", {"chat_template": value})
    with pytest.raises(ModelError, match="chat_template"):
        load_hf(directory)


@pytest.mark.parametrize("form", ["text", "named", "file"])
def test_chat_template_in_all_its_places(directory: Path, form: str) -> None:
    """As text, as a named list and in a file of its own, with the special tokens filled in."""
    template: object = "{{ bos_token }}{{ messages[0].content }}"
    settings: dict[str, object] = {"bos_token": {"content": "<s>"}}
    if form == "file":
        (directory / "chat_template.jinja").write_text(str(template))
    else:
        named = [{"name": "tool", "template": "-"}, {"name": "default", "template": template}]
        settings["chat_template"] = template if form == "text" else named
    write_json(directory / "tokenizer_config.json", settings)
    tokenizer = load_hf(directory)[1]
    assert tokenizer.chat_prompt([{"role": "user", "content": "x"}]) == "<s>x"


@pytest.mark.parametrize("name", ["tinny", "/no/such/directory", "missing.gguf", ""])
def test_an_unknown_model_says_what_is_accepted(name: str) -> None:
    """A name that is neither known nor a path gives the choices."""
    with pytest.raises(ModelNotFoundError, match="expected tiny, smollm2"):
        load_model(name)
