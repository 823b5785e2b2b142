import random
from pathlib import Path
from typing import Any

import pytest
import torch

from reference_engine.model.catalog import TINY
from reference_engine.model.load import load_model
from tests.reference_engine.model.build import run_alone

LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {"tie_word_embeddings": False}),
    "llama tied": ("Llama", {"tie_word_embeddings": True}),
    "llama biased": ("Llama", {"attention_bias": True}),
    "llama wide heads": ("Llama", {"head_dim": 32, "num_key_value_heads": 6}),
    "llama linear": ("Llama", {"rope_parameters": LINEAR}),
    "llama 3": ("Llama", {"rope_parameters": "llama3", "tie_word_embeddings": True}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": False}),
    "qwen2 tied": ("Qwen2", {"tie_word_embeddings": True, "sliding_window": 16}),
    "qwen2 far base": ("Qwen2", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "qwen3": ("Qwen3", {"head_dim": 16, "tie_word_embeddings": False}),
    "qwen3 tied": ("Qwen3", {"head_dim": 32, "tie_word_embeddings": True}),
    "qwen3 biased": ("Qwen3", {"head_dim": 16, "attention_bias": True}),
}


def some_ids(length: int = 150) -> list[int]:
    """Longer than the original context of the scaled variants."""
    rng = random.Random(7)
    return [rng.randrange(1, 1024) for _ in range(length)]


@pytest.mark.parametrize("older", [False, True], ids=["rope_parameters", "rope_theta"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_equal_those_of_transformers(tmp_path: Path, variant: str, *, older: bool) -> None:
    """Every architecture and option, from the files that transformers wrote, in both spellings."""
    from tests.reference_engine.oracle import checkpoints  # noqa: PLC0415  # needs transformers

    family, settings = VARIANTS[variant]
    if settings.get("rope_parameters") == "llama3":
        settings = {**settings, "rope_parameters": checkpoints.LLAMA3}
    theirs = checkpoints.random_checkpoint(family, **settings)
    checkpoints.save(theirs, tmp_path)
    if older:
        checkpoints.older_spelling(tmp_path)
    ids = some_ids()
    expected = checkpoints.logits(theirs, ids)
    assert expected.std() > 0.1
    ours = run_alone(load_model(str(tmp_path)).model, ids)
    torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)


def test_shards_are_joined(tmp_path: Path) -> None:
    """The index and the files of a checkpoint that transformers split."""
    from tests.reference_engine.oracle import checkpoints  # noqa: PLC0415  # needs transformers

    theirs = checkpoints.random_checkpoint("Llama")
    checkpoints.save(theirs, tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    ids = some_ids(20)
    ours = run_alone(load_model(str(tmp_path)).model, ids)
    torch.testing.assert_close(ours, checkpoints.logits(theirs, ids), atol=1e-4, rtol=1e-4)


def test_logits_of_tiny_equal_those_of_transformers() -> None:
    """The checked-in model, over text that it knows how to continue."""
    import transformers  # noqa: PLC0415  # a developer's tool

    from tests.reference_engine.oracle import checkpoints  # noqa: PLC0415  # needs transformers

    theirs = transformers.AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32).eval()
    loaded = load_model("tiny")
    ids = [0, *loaded.tokenizer.encode("import os\n\n\ndef walk(path):\n    for name in os.")]
    ours = run_alone(loaded.model, ids)
    torch.testing.assert_close(ours, checkpoints.logits(theirs, ids), atol=1e-3, rtol=1e-4)
