"""The checked-in model really learned its text."""

import torch

from reference_engine.model.catalog import TINY
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.load import load_model
from reference_engine.model.load_hf import load_hf
from tests.reference_engine.model.build import BLOCK_SIZE, blocks_for, pack, run_alone

SNIPPET = '''"""Counts the words of a text."""

import sys


class WordCounter:
    def __init__(self, text):
        self.text = text
        self.counts = {}

    def count(self):
        for word in self.text.split():
            self.counts[word] = self.counts.get(word, 0) + 1
        return self.counts


if __name__ == "__main__":
    print(WordCounter(sys.stdin.read()).count())
'''


def test_shape_and_end_token() -> None:
    """`tiny` is the small model with 1,024 tokens that ends texts by <|endoftext|>."""
    loaded = load_model("tiny")
    assert loaded.name == "tiny"
    assert loaded.config.vocab_size == loaded.tokenizer.vocab_size == 1024
    assert loaded.config.eos_token_ids == (0,)
    assert loaded.tokenizer.eos_token_ids == {0}
    assert 4e5 < sum(p.numel() for p in load_hf(TINY)[0].parameters()) < 6e5


def test_loss_on_unseen_text_is_far_below_chance() -> None:
    """Uniform guessing costs 6.93 nats a token."""
    loaded = load_model("tiny")
    ids = [0, *loaded.tokenizer.encode(SNIPPET)]
    loss = torch.nn.functional.cross_entropy(
        run_alone(loaded.model, ids)[:-1], torch.tensor(ids[1:])
    )
    assert loss < 4.5


def test_greedy_text_looks_like_python() -> None:
    """Step by step through the cache, the model continues a method with its body."""
    loaded = load_model("tiny")
    ids = loaded.tokenizer.encode("class Reader:\n    def __init__(self, path, mode=None")
    total = len(ids) + 24
    cache = KVCache.allocate(loaded.config, blocks_for(total), BLOCK_SIZE)
    table, new, start = list(range(blocks_for(total))), ids, 0
    out: list[int] = []
    while len(out) < 24:
        logits = loaded.model(pack([new], [start], [table]), cache)
        start += len(new)
        new = [int(logits[-1].argmax())]
        out += new
    text = loaded.tokenizer.decode(out)
    assert "):\n" in text
    assert "self." in text
