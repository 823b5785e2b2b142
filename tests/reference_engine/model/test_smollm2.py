"""The real model, where it has been pulled."""

from pathlib import Path

import pytest

from reference_engine.errors import ModelNotFoundError
from reference_engine.model.catalog import SMOLLM2, cache_directory
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.load import load_model
from tests.reference_engine.model.build import BLOCK_SIZE, blocks_for, pack


@pytest.mark.skipif(
    not (cache_directory() / SMOLLM2).is_file(),
    reason="SmolLM2 is not in the cache; run: oe-engine pull smollm2",
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_it_knows_the_capital_of_france(dtype: str) -> None:
    """Greedy decoding through the chat template gives the right sentence and ends."""
    loaded = load_model("smollm2", dtype=dtype)
    prompt = loaded.tokenizer.chat_prompt(
        [{"role": "user", "content": "What is the capital of France?"}]
    )
    assert prompt is not None
    new, start = loaded.tokenizer.encode(prompt), 0
    out: list[int] = []
    blocks = blocks_for(len(new) + 16)
    cache = KVCache.allocate(loaded.config, blocks, BLOCK_SIZE)
    while len(out) < 16 and not loaded.tokenizer.eos_token_ids.intersection(out):
        logits = loaded.model(pack([new], [start], [range(blocks)]), cache)
        start += len(new)
        new = [int(logits[-1].argmax())]
        out += new
    assert loaded.tokenizer.decode(out) == "The capital of France is Paris."
    assert out[-1] in loaded.tokenizer.eos_token_ids


def test_without_the_file_the_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says how to get the model."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ModelNotFoundError, match="run: oe-engine pull smollm2"):
        load_model("smollm2")
