import dataclasses
import random

import pytest
import torch
from torch import Tensor

from reference_engine.model.kv_cache import KVCache
from reference_engine.model.llama import Llama
from tests.reference_engine.model.build import (
    BLOCK_SIZE,
    blocks_for,
    config,
    naive_logits,
    pack,
    random_model,
    run_alone,
)


def random_ids(rng: random.Random, length: int, vocab_size: int = 61) -> list[int]:
    return [rng.randrange(vocab_size) for _ in range(length)]


def run_mixed(model: Llama, sequences: list[list[int]], rng: random.Random) -> list[Tensor]:
    """Logits of several sequences cut at random and run in random company."""
    free = list(range(sum(blocks_for(len(ids)) for ids in sequences)))
    rng.shuffle(free)
    tables = [[free.pop() for _ in range(blocks_for(len(ids)))] for ids in sequences]
    cache = KVCache.allocate(model.config, sum(map(len, tables)), BLOCK_SIZE)
    done = [0] * len(sequences)
    out: list[list[Tensor]] = [[] for _ in sequences]
    while waiting := [i for i, ids in enumerate(sequences) if done[i] < len(ids)]:
        chosen = rng.sample(waiting, rng.randint(1, len(waiting)))
        rows = [sequences[i][done[i] : done[i] + rng.choice([1, 1, 2, 3, 7, 40])] for i in chosen]
        batch = pack(rows, [done[i] for i in chosen], [tables[i] for i in chosen])
        parts = model(batch, cache).split([len(row) for row in rows])
        for i, row, part in zip(chosen, rows, parts, strict=True):
            out[i].append(part)
            done[i] += len(row)
    return [torch.cat(parts) for parts in out]


@pytest.mark.parametrize(
    ("heads", "kv_heads", "tied"), [(6, 2, True), (4, 4, False), (8, 1, True), (5, 5, False)]
)
def test_logits_equal_a_naive_decoder(heads: int, kv_heads: int, tied: bool) -> None:
    """Grouped, multi-head and multi-query attention give what the definition gives."""
    shape = config(num_heads=heads, num_kv_heads=kv_heads, tie_word_embeddings=tied)
    model = random_model(shape)
    ids = random_ids(random.Random(1), 19)
    torch.testing.assert_close(
        run_alone(model, ids).double(), naive_logits(model, ids), atol=2e-4, rtol=1e-4
    )


@pytest.mark.parametrize(
    "parts", [{"qkv_bias": True}, {"qkv_bias": True, "output_bias": True}, {"qk_norm": True}]
)
def test_biases_and_head_norms_equal_a_naive_decoder(parts: dict[str, bool]) -> None:
    """The parts that Qwen adds to a Llama, computed one by one and as prepared products."""
    model = random_model(config(**parts))
    ids = random_ids(random.Random(1), 13)
    expected = naive_logits(model, ids)
    torch.testing.assert_close(run_alone(model, ids).double(), expected, atol=2e-4, rtol=1e-4)
    prepared = run_alone(model.prepare(), ids)
    torch.testing.assert_close(prepared.double(), expected, atol=2e-4, rtol=1e-4)


def test_bfloat16_products_are_near_and_leave_the_head_alone() -> None:
    """Rounded factors change the logits a little; they aren't multiples of a bfloat16 step."""
    model = random_model(config(tie_word_embeddings=False))
    ids = random_ids(random.Random(1), 13)
    exact = run_alone(model, ids)
    rough = run_alone(model.prepare(torch.bfloat16), ids)
    assert 0 < (rough - exact).abs().max() < 0.05 * exact.abs().max()
    assert not torch.equal(rough, rough.bfloat16().float())


@pytest.mark.parametrize("tied", [True, False])
def test_preparing_lets_the_copied_weights_go(tied: bool) -> None:
    """No matrix is held twice; what is looked up or applied by element stays."""
    model = random_model(config(qkv_bias=True, tie_word_embeddings=tied)).prepare()
    names = set(model.state_dict())
    assert "model.embed_tokens.weight" in names
    assert not any("_proj" in name or "lm_head" in name for name in names)
    assert model.prepare() is model


@pytest.mark.parametrize("chunks", [[1] * 23, [22, 1], [5, 17, 1], [8, 8, 7]])
def test_prefill_in_chunks_equals_prefill_at_once(chunks: list[int]) -> None:
    """Cutting a prompt into steps doesn't change its logits."""
    model = random_model(config())
    ids = random_ids(random.Random(2), 23)
    cache = KVCache.allocate(model.config, blocks_for(23), BLOCK_SIZE)
    table, start, parts = list(range(blocks_for(23)))[::-1], 0, []
    for length in chunks:
        parts.append(model(pack([ids[start : start + length]], [start], [table]), cache))
        start += length
    torch.testing.assert_close(torch.cat(parts), run_alone(model, ids), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_a_row_does_not_depend_on_its_company(seed: int) -> None:
    """Packed with others, in chunks and in shuffled blocks, a sequence gets its own logits."""
    rng = random.Random(seed)
    model = random_model(config(), seed)
    sequences = [random_ids(rng, rng.choice([1, 3, 4, 9, 33, 150])) for _ in range(6)]
    for ids, together in zip(sequences, run_mixed(model, sequences, rng), strict=True):
        alone = run_alone(model, ids)
        torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)
        assert torch.equal(together.argmax(-1), alone.argmax(-1))


def kernels_are_row_stable() -> bool:
    """Whether this machine's matrix product gives rows the same bits at any number of rows."""
    torch.manual_seed(0)
    x, w = torch.randn(64, 24), torch.randn(40, 24)
    whole = x @ w.T
    return all(torch.equal(x[:n] @ w.T, whole[:n]) for n in range(4, 64, 4))


@pytest.mark.skipif(not kernels_are_row_stable(), reason="BLAS here is not stable by rows of 4")
@pytest.mark.parametrize("dtype", [None, torch.float32, torch.bfloat16])
def test_a_row_is_the_same_to_the_bit_in_any_company(dtype: torch.dtype | None) -> None:
    """Seeded sampling stays reproducible under load: not even the last bit moves."""
    rng = random.Random(9)
    model = random_model(config(qkv_bias=True, qk_norm=True))
    if dtype is not None:
        model.prepare(dtype)
    sequences = [random_ids(rng, rng.choice([2, 30, 200, 420])) for _ in range(5)]
    for ids, together in zip(sequences, run_mixed(model, sequences, rng), strict=True):
        assert torch.equal(together, run_alone(model, ids))


def test_only_the_wanted_logits_come_back() -> None:
    """`logit_rows` chooses tokens and keeps their order; none wanted gives none."""
    model = random_model(config())
    batch = pack([[1, 2, 3], [4, 5]], [0, 0], [[0], [1]])
    cache = KVCache.allocate(model.config, 2, BLOCK_SIZE)
    every = model(batch, cache)
    for wanted in ([4, 2], [0], []):
        rows = torch.tensor(wanted, dtype=torch.int64)
        some = model(dataclasses.replace(batch, logit_rows=rows), cache)
        assert some.shape == (len(wanted), 61)
        torch.testing.assert_close(some, every[rows])


def test_stale_cache_is_not_seen() -> None:
    """Old keys and values in a reused block change nothing."""
    model = random_model(config())
    cache = KVCache.allocate(model.config, 4, BLOCK_SIZE)
    cache.keys.fill_(50.0)
    cache.values.fill_(-50.0)
    ids = [7, 8, 9, 10, 11]
    torch.testing.assert_close(
        model(pack([ids], [0], [[3, 1]]), cache), run_alone(model, ids), atol=1e-4, rtol=1e-4
    )


def test_logits_are_float32_and_cache_may_be_smaller() -> None:
    """A bfloat16 cache halves the memory and keeps float32 logits near the exact ones."""
    model = random_model(config())
    cache = KVCache.allocate(model.config, 8, BLOCK_SIZE, torch.bfloat16)
    logits = model(pack([range(20)], [0], [range(5)]), cache)
    exact = run_alone(model, range(20))
    assert logits.dtype == torch.float32
    assert 0 < (logits - exact).abs().max() < 0.2 * exact.abs().max()


@pytest.mark.parametrize(("blocks", "size"), [(0, 16), (4, 0), (-1, 16)])
def test_an_empty_cache_is_refused(blocks: int, size: int) -> None:
    """A cache without a slot is an error that shows the values."""
    with pytest.raises(ValueError, match=f"{blocks} and {size}"):
        KVCache.allocate(config(), blocks, size)
