"""The whole engine against generate: prompts share batches here, there is one at a time."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from reference_engine.engine.block import BlockPool
from reference_engine.engine.core import EngineCore
from reference_engine.engine.request import Request, Sampling, Stopping
from reference_engine.engine.runner import Runner
from reference_engine.engine.scheduler import Scheduler, SchedulerLimits
from reference_engine.model.catalog import SMOLLM2, TINY, cache_directory
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.load import LoadedModel, load_model
from reference_engine.model.load_gguf import load_gguf
from tests.reference_engine.engine.fakes import run
from tests.reference_engine.oracle.prompts import PROMPTS

BLOCK_SIZE = 16
NUM_BLOCKS = 1024
TIE = 1e-3
"""Logits closer than this may come out in the other order: sums are added in another order."""
ALL = "OE_ENGINE_ORACLE_ALL"
"""Environment variable: compare all prompts with SmolLM2, which takes a minute or more."""


def engine_tokens(
    loaded: LoadedModel, prompts: list[list[int]], new_tokens: int
) -> list[list[int]]:
    """Greedy tokens of all prompts, computed together."""
    pool = BlockPool(NUM_BLOCKS, BLOCK_SIZE)
    cache = KVCache.allocate(loaded.config, NUM_BLOCKS, BLOCK_SIZE)
    scheduler = Scheduler(pool, SchedulerLimits(32, 256))
    core = EngineCore(
        scheduler,
        Runner(loaded.model, cache),
        loaded.tokenizer,
        loaded.config.max_position_embeddings,
    )
    requests = [
        Request(
            prompt=tuple(ids),
            sampling=Sampling(seed=0, temperature=0.0),
            stopping=Stopping(max_tokens=new_tokens),
        )
        for ids in prompts
    ]
    return [collected.ids() for collected in run(core, *requests)]


def compare(theirs: object, loaded: LoadedModel, prompts: Sequence[str], new_tokens: int) -> int:
    """Check every token; return the number of ties that went the other way.

    One pass of transformers over prompt and answer: each token must be its likeliest, which by
    induction is what its greedy search gives.
    """
    from tests.reference_engine.oracle import checkpoints  # noqa: PLC0415  # needs transformers

    ids = [loaded.tokenizer.encode(text) for text in prompts]
    ends, ties = loaded.tokenizer.eos_token_ids, 0
    for prompt, found in zip(ids, engine_tokens(loaded, ids, new_tokens), strict=True):
        scores = checkpoints.logits(theirs, prompt + found)[len(prompt) - 1 :]
        for token, score in zip(found, scores[:-1], strict=True):
            behind = float(score.max() - score[token])
            assert behind < TIE, (loaded.tokenizer.decode(prompt), found)
            ties += behind > 0
        ended = found[-1:] and found[-1] in ends
        assert len(found) == new_tokens or ended or int(scores[-1].argmax()) in ends
    return ties


def test_fifty_prompts_on_tiny() -> None:
    """Every token of 50 prompts run together is the one that transformers would take."""
    import transformers  # noqa: PLC0415  # a developer's tool

    theirs = transformers.AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32).eval()
    assert len(set(PROMPTS)) == 50
    assert compare(theirs, load_model("tiny"), PROMPTS, 32) <= 2


@pytest.mark.parametrize("family", ["Llama", "Qwen2", "Qwen3"])
def test_generate_gives_the_same_tokens(family: str, tmp_path: Path) -> None:
    """The literal comparison with generate, for random weights of every architecture."""
    from tests.reference_engine.oracle import checkpoints  # noqa: PLC0415  # needs transformers

    theirs = checkpoints.random_checkpoint(family, head_dim=16)
    loaded = load_model(str(checkpoints.save(theirs, tmp_path)))
    prompts = [loaded.tokenizer.encode(text) for text in PROMPTS[:5]]
    for prompt, found in zip(prompts, engine_tokens(loaded, prompts, 12), strict=True):
        assert found == checkpoints.greedy(theirs, prompt, 12)[: len(found)]
        assert len(found) == 12


@pytest.mark.skipif(
    not (cache_directory() / SMOLLM2).is_file(),
    reason="SmolLM2 is not in the cache; run: oe-engine pull smollm2",
)
def test_prompts_on_smollm2() -> None:
    """The same with a real model whose weights come from a GGUF file."""
    theirs = smollm2_in_transformers(cache_directory() / SMOLLM2)
    prompts = PROMPTS if os.environ.get(ALL) else PROMPTS[::17]
    assert compare(theirs, load_model("smollm2"), prompts, 24) <= 2


def smollm2_in_transformers(path: Path) -> object:
    """Transformers' model with the weights that our loader reads; the loader has its own tests."""
    import transformers  # noqa: PLC0415  # a developer's tool

    ours, _, shape = load_gguf(path)
    config = transformers.LlamaConfig(
        vocab_size=shape.vocab_size,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.num_layers,
        num_attention_heads=shape.num_heads,
        num_key_value_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        rms_norm_eps=shape.rms_norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        max_position_embeddings=shape.max_position_embeddings,
        tie_word_embeddings=True,
        eos_token_id=list(shape.eos_token_ids),
        bos_token_id=None,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    missing, unexpected = model.load_state_dict(ours.state_dict(), strict=False)
    assert set(missing) <= {"lm_head.weight"}
    assert not unexpected
    model.tie_weights()
    return model
