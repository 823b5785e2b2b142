from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from reference_engine.errors import CheckpointError, ModelError
from reference_engine.model.llama import Llama
from reference_engine.model.load import load_model
from reference_engine.model.load_gguf import DIVISORS, load_gguf
from tests.reference_engine.model.build import config, random_model, run_alone
from tests.reference_engine.model.build_gguf import (
    Stored,
    floats,
    llama_metadata,
    llama_tensors,
    vocabulary,
    write_gguf,
)

LINEAR = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}


def small_model(*, tied: bool = True) -> Llama:
    shape = config(
        vocab_size=len(vocabulary()), hidden_size=32, intermediate_size=64, tie_word_embeddings=tied
    )
    return random_model(shape)


def write(path: Path, model: Llama, **changes: object) -> Path:
    """The model as a file, with some metadata changed or (None) left out."""
    metadata = {**llama_metadata(model), **changes}
    kept = {name: item for name, item in metadata.items() if item is not None}
    return write_gguf(path / "small.gguf", kept, llama_tensors(model))


@pytest.mark.parametrize("tied", [True, False])
def test_a_written_model_is_read_back(tmp_path: Path, tied: bool) -> None:
    """Configuration, weights (q and k in their order) and logits survive the format."""
    model = small_model(tied=tied)
    loaded = load_model(str(write(tmp_path, model)))
    assert loaded.name == "small"
    assert loaded.config.tie_word_embeddings == tied
    assert loaded.config.eos_token_ids == (1, 0)
    assert torch.equal(run_alone(loaded.model, range(20)), run_alone(model.prepare(), range(20)))


def test_quantised_weights_are_close(tmp_path: Path) -> None:
    """A model in Q8_0 gives nearly the logits of the original."""

    def q8_0(weight: Tensor) -> Stored:
        blocks = weight.reshape(-1, 32)
        scale = (blocks.abs().amax(1, keepdim=True) / 127).half()
        levels = (blocks / scale.float()).round().clamp(-127, 127).to(torch.int8)
        raw = torch.cat((scale.view(torch.int8), levels), dim=1)
        return Stored(tuple(weight.shape), 8, raw.numpy().tobytes())

    model = random_model(
        config(vocab_size=len(vocabulary()), hidden_size=32, intermediate_size=64, num_heads=4)
    )
    path = write_gguf(tmp_path / "q.gguf", llama_metadata(model), llama_tensors(model, q8_0))
    exact, near = run_alone(model, range(9)), run_alone(load_gguf(path)[0], range(9))
    assert 0 < (exact - near).abs().max() < 0.1 * exact.abs().max()


def test_the_tokenizer_comes_with_the_file(tmp_path: Path) -> None:
    """Merges, single digits, special tokens, end tokens and the chat template are used."""
    tokenizer = load_gguf(write(tmp_path, small_model()))[1]
    tokens = vocabulary()
    assert tokenizer.encode("he") == [tokens.index("he")]
    assert tokenizer.encode("12") == [tokens.index("1"), tokens.index("2")]
    assert tokenizer.encode("<|im_end|>") == [1]
    assert tokenizer.decode(tokenizer.encode("hé 12\n")) == "hé 12\n"
    assert tokenizer.eos_token_ids == {0, 1}
    assert tokenizer.chat_prompt([{"role": "user", "content": "hi"}]) == "<|im_end|>hi"


def test_bos_is_added_only_on_request(tmp_path: Path) -> None:
    """A file that wants BOS gets it for plain prompts, not inside chat prompts."""
    changes = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 0}
    tokenizer = load_gguf(write(tmp_path, small_model(), **changes))[1]
    plain = tokenizer.encode("a")
    assert tokenizer.encode("a", add_special_tokens=True) == [0, *plain]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("general.architecture", "gemma", "general.architecture is 'gemma'"),
        ("llama.rope.scaling.type", "yarn", "llama.rope.scaling.type is 'yarn'"),
        ("llama.expert_count", 8, "llama.expert_count is 8"),
        ("llama.block_count", None, "llama.block_count is missing"),
        ("llama.block_count", 3, "3 of|9 of"),
        ("llama.block_count", 1, r"blk|layers\.1\."),
        ("llama.embedding_length", 64, "has shape"),
        ("llama.attention.head_count_kv", 5, "can't share"),
        ("llama.context_length", "long", "llama.context_length is 'long'"),
        ("tokenizer.ggml.pre", "dbrx", "tokenizer.ggml.pre is 'dbrx'"),
        ("tokenizer.ggml.tokens", None, "llama.vocab_size is missing"),
        ("tokenizer.ggml.tokens", 7, "llama.vocab_size is missing"),
        ("llama.vocab_size", 4, "defines 259 tokens, the model has 4"),
        ("llama.block_count", 10**9, "1000000000 layers"),
        ("tokenizer.ggml.merges", ["h zz"], "'h zz'"),
        ("tokenizer.ggml.token_type", [1, 1], "tokenizer.ggml.token_type"),
        ("tokenizer.ggml.eos_token_id", 9999, "eos_token_id 9999"),
        ("tokenizer.chat_template", "{% if", "chat_template"),
        ("general.alignment", 0, "general.alignment is 0"),
    ],
)
def test_wrong_metadata_is_named(tmp_path: Path, name: str, value: object, expected: str) -> None:
    """A field that is missing, wrong or unsupported is named in the error."""
    with pytest.raises(ModelError, match=expected):
        load_gguf(write(tmp_path, small_model(), **{name: value}))


def test_rotary_frequencies_are_divided(tmp_path: Path) -> None:
    """By a tensor of divisors, or linearly by the metadata."""
    model = small_model()
    tensors = {**llama_tensors(model), DIVISORS: floats(torch.tensor([1.0, 1, 2, 8]))}
    loaded = load_gguf(write_gguf(tmp_path / "a.gguf", llama_metadata(model), tensors))[0]
    torch.testing.assert_close(loaded.frequencies, model.frequencies / torch.tensor([1.0, 1, 2, 8]))
    linear = load_gguf(write(tmp_path, model, **LINEAR))[0]
    torch.testing.assert_close(linear.frequencies, model.frequencies / 4)


@pytest.mark.parametrize(
    ("divisors", "metadata", "expected"),
    [
        (torch.ones(3), {}, "3 rotary frequencies are scaled, expected 4"),
        (torch.zeros(4), {}, "rope_freqs.weight holds no positive numbers"),
        (torch.ones(4), LINEAR, "is 'linear' and rope_freqs.weight is there"),
        (torch.ones(4), {"llama.rope.scaling.type": "yarn"}, "scaling.type is 'yarn'"),
    ],
)
def test_wrong_rotary_divisors_are_refused(
    tmp_path: Path, divisors: Tensor, metadata: dict[str, object], expected: str
) -> None:
    """Too few, zeros, and two kinds of scaling at once."""
    model = small_model()
    tensors = {**llama_tensors(model), DIVISORS: floats(divisors)}
    path = write_gguf(tmp_path / "a.gguf", {**llama_metadata(model), **metadata}, tensors)
    with pytest.raises(ModelError, match=expected):
        load_gguf(path)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda raw: b"", "can't be read"),
        (lambda raw: b"PK\3\4" + raw[4:], "not a GGUF file"),
        (lambda raw: raw[:4] + b"\1" + raw[5:], "version 1"),
        (lambda raw: raw[:200], "truncated"),
        (lambda raw: raw[:-5000], "truncated in the data of tensor"),
        (lambda raw: raw[:8] + b"\xff" * 8 + raw[16:], "truncated|dimensions|UTF-8"),
        (lambda raw: raw[:24] + b"\xff" * 8 + raw[32:], "truncated"),
    ],
)
def test_a_damaged_file_is_refused(
    tmp_path: Path, damage: Callable[[bytes], bytes], expected: str
) -> None:
    """Cut, overwritten or foreign files give an error that says what is wrong."""
    path = write(tmp_path, small_model())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=expected):
        load_gguf(path)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (Stored((32,), 99, b"\0" * 128), "ggml type 99"),
        (Stored((2, 33), 3, b"\0" * 128), "rows of 33"),
        (Stored((33,), 0, b"\0" * 132), r"shape \[33\]"),
        (Stored((32,), 0, b"\xff" * 128), "not finite"),
    ],
)
def test_a_wrong_tensor_is_named(tmp_path: Path, stored: Stored, expected: str) -> None:
    """An unknown type, an odd row, a wrong shape and NaN are told apart."""
    model = small_model()
    tensors = {**llama_tensors(model), "output_norm.weight": stored}
    path = write_gguf(tmp_path / "a.gguf", llama_metadata(model), tensors)
    with pytest.raises(CheckpointError, match=expected):
        load_gguf(path)
