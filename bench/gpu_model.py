"""Whole decode steps with and without CUDA graphs, and the engine end to end."""

import time
from collections.abc import Iterator

import torch
from torch import Tensor

from bench.gpu_timing import seconds
from reference_engine.model.batch import Batch
from reference_engine.model.config import ModelConfig
from reference_engine.model.cuda_graph import graphed
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.llama import Llama

PAGE = 16

Row = dict[str, object]


def shape(name: str) -> ModelConfig:
    """A model of random weights in a known shape; `trial` is for a CPU."""
    sizes = {
        "trial": (1_000, 64, 128, 2, 4, 2, 16, False),
        "SmolLM2-135M": (49_152, 576, 1536, 30, 9, 3, 64, False),
        "Qwen3-0.6B": (151_936, 1024, 3072, 28, 16, 8, 128, True),
    }
    vocab, hidden, inner, layers, heads, kv_heads, head_dim, qk_norm = sizes[name]
    return ModelConfig(
        architecture="LlamaForCausalLM",
        vocab_size=vocab,
        hidden_size=hidden,
        intermediate_size=inner,
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        rms_norm_eps=1e-5,
        rope_theta=100_000.0,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_ids=(0,),
        qk_norm=qk_norm,
    )


def random_model(config: ModelConfig, device: torch.device) -> Llama:
    """Weights that keep the activations near 1, products in bfloat16."""
    with torch.device(device):
        model = Llama(config).requires_grad_(requires_grad=False)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    return model.to(device).prepare(torch.bfloat16)


def decode_batch(rows: int, context: int) -> Batch:
    """One new token in each of some rows of equal length, on the CPU as the runner makes it."""
    width = -(-context // PAGE)
    tables = torch.arange(rows * width).view(rows, width)
    at = context - 1
    return Batch(
        token_ids=torch.arange(rows) + 1,
        positions=torch.full((rows,), at),
        slots=tables[:, at // PAGE] * PAGE + at % PAGE,
        query_lengths=(1,) * rows,
        context_lengths=(context,) * rows,
        block_tables=tables,
        logit_rows=torch.arange(rows),
    )


@torch.inference_mode()
def decode_steps(name: str, device: torch.device, context: int) -> Iterator[Row]:
    """Time of a step for 1, 16 and 64 rows, greedy token on the CPU included."""
    config = shape(name)
    model = random_model(config, device)
    blocks = 64 * -(-context // PAGE)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    cache = KVCache.allocate(config, blocks, PAGE, dtype, device)
    start = time.perf_counter()
    graphs = graphed(model, cache, 64)
    captured = time.perf_counter() - start
    for rows in (1, 16, 64):
        batch = decode_batch(rows, context)
        plain, replayed = model(batch, cache), graphs(batch, cache)
        error = float((plain - replayed).abs().max() / plain.abs().max())

        def step(with_graphs: bool, batch: Batch = batch) -> list[int]:
            logits: Tensor = graphs(batch, cache) if with_graphs else model(batch, cache)
            tokens: list[int] = logits.argmax(-1).tolist()
            return tokens

        eager = seconds(lambda: step(False), device)  # noqa: FBT003
        graph = seconds(lambda: step(True), device)  # noqa: FBT003
        yield {
            "model": name,
            "rows": rows,
            "context": context,
            "eager_ms": eager * 1e3,
            "graph_ms": graph * 1e3,
            "graph_tok_s": rows / graph,
            "speedup": eager / graph,
            "capture_s": captured,
            "error": error,
            "ok": error < 0.02,
        }


class NumberedTokens:
    """Stands in for a tokenizer: token i is the number i in hex and nothing ends an output."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.eos_token_ids: frozenset[int] = frozenset()

    def token_bytes(self, token_id: int) -> bytes:
        """Text of a token."""
        return f"{token_id:x} ".encode()


def end_to_end(name: str, device: torch.device, requests: int, longest: int) -> Row:
    """The engine's loop over ragged requests, greedy: tokens per second of output."""
    from reference_engine.engine.block import BlockPool  # noqa: PLC0415  # needs llguidance
    from reference_engine.engine.core import EngineCore  # noqa: PLC0415
    from reference_engine.engine.request import Request, Sampling, Stopping  # noqa: PLC0415
    from reference_engine.engine.runner import Runner  # noqa: PLC0415
    from reference_engine.engine.scheduler import Scheduler, SchedulerLimits  # noqa: PLC0415

    config = shape(name)
    model = random_model(config, device)
    running = min(requests, 256)
    blocks = running * -(-2 * longest // PAGE)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    cache = KVCache.allocate(config, blocks, PAGE, dtype, device)
    core = EngineCore(
        Scheduler(BlockPool(blocks, PAGE), SchedulerLimits(running, 8192)),
        Runner(graphed(model, cache, running), cache),
        NumberedTokens(config.vocab_size),  # type: ignore[arg-type]
        config.max_position_embeddings,
    )
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(longest // 10, longest + 1, (requests, 2), generator=generator).tolist()
    for prompt, output in sizes:
        ids = torch.randint(1, config.vocab_size, (prompt,), generator=generator).tolist()
        core.add(Request(tuple(ids), Sampling(0, 0.0), Stopping(max_tokens=output)))
    start = time.perf_counter()
    steps = 0
    while core.busy:
        core.step()
        steps += 1
    took = time.perf_counter() - start
    outputs = sum(output for _, output in sizes)
    return {
        "model": name,
        "requests": requests,
        "prompt_tokens": sum(prompt for prompt, _ in sizes),
        "output_tokens": outputs,
        "seconds": took,
        "steps": steps,
        "output_tok_s": outputs / took,
    }
