"""A byte tokenizer, a model whose next token is known, and one with random weights."""

from dataclasses import dataclass

import torch
from torch import Tensor

from reference_engine.engine.block import BlockPool
from reference_engine.engine.core import Emitted, EngineCore, OpenRequest
from reference_engine.engine.output import (
    Event,
    OutputFinished,
    PromptScored,
    Token,
    TokensProduced,
)
from reference_engine.engine.request import Request, Sampling, Scoring, Stopping
from reference_engine.engine.runner import Runner
from reference_engine.engine.scheduler import Scheduler, SchedulerLimits
from reference_engine.model.batch import Batch
from reference_engine.model.config import ModelConfig
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.llama import Llama

EOS = 256
VOCABULARY = 257
CONFIG = ModelConfig(
    architecture="LlamaForCausalLM",
    vocab_size=VOCABULARY,
    hidden_size=16,
    intermediate_size=24,
    num_layers=2,
    num_heads=2,
    num_kv_heads=1,
    head_dim=8,
    rms_norm_eps=1e-5,
    rope_theta=10000.0,
    max_position_embeddings=256,
    tie_word_embeddings=True,
    eos_token_ids=(EOS,),
)


class ByteTokenizer:
    """One token per byte, and EOS without text."""

    vocab_size = VOCABULARY
    eos_token_ids = frozenset((EOS,))
    special_token_ids = frozenset((EOS,))

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token_id: int) -> bytes:
        return bytes((token_id,)) if token_id < EOS else b""

    def token_text(self, token_id: int) -> str:
        return "<eos>" if token_id == EOS else self.token_bytes(token_id).decode(errors="replace")

    def decode(self, ids: list[int]) -> str:
        return b"".join(map(self.token_bytes, ids)).decode(errors="replace")


class ScriptModel:
    """Continues every sequence with the script: position p is followed by script[p - prompt]."""

    def __init__(self, script: bytes | list[int], prompt_length: int) -> None:
        self.script = list(script)
        self.prompt_length = prompt_length

    def __call__(self, batch: Batch, _cache: KVCache) -> Tensor:
        positions = batch.positions[batch.logit_rows].tolist()
        logits = torch.zeros(len(positions), VOCABULARY)
        for row, position in enumerate(positions):
            at = position + 1 - self.prompt_length
            logits[row, self.script[at] if 0 <= at < len(self.script) else EOS] = 10.0
        return logits


def random_model(seed: int = 0) -> Llama:
    """Small random weights, large enough that sampled tokens depend on the whole context."""
    torch.manual_seed(seed)
    model = Llama(CONFIG).requires_grad_(requires_grad=False)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, mean=1.0 if parameter.dim() == 1 else 0.0, std=0.3)
    return model


@dataclass(frozen=True)
class Built:
    """A core with the parts that tests look into."""

    core: EngineCore
    pool: BlockPool
    scheduler: Scheduler


def build(
    model: object,
    *,
    num_blocks: int = 64,
    block_size: int = 4,
    max_running: int = 16,
    max_batched_tokens: int = 64,
) -> Built:
    pool = BlockPool(num_blocks, block_size)
    scheduler = Scheduler(pool, SchedulerLimits(max_running, max_batched_tokens))
    cache = KVCache.allocate(CONFIG, num_blocks, block_size)
    window = min(CONFIG.max_position_embeddings, num_blocks * block_size)
    core = EngineCore(scheduler, Runner(model, cache), ByteTokenizer(), window)
    return Built(core, pool, scheduler)


def request(
    prompt: bytes = b"ab",
    *,
    max_tokens: int | None = 8,
    seed: int = 1,
    temperature: float = 0.0,
    num_sequences: int = 1,
    scoring: Scoring | None = None,
    **stopping: object,
) -> Request:
    return Request(
        prompt=tuple(prompt),
        sampling=Sampling(seed=seed, temperature=temperature),
        stopping=Stopping(max_tokens=max_tokens, **stopping),
        scoring=scoring or Scoring(),
        num_sequences=num_sequences,
    )


@dataclass
class Collected:
    """What one request produced, per output."""

    events: list[Event]

    def tokens(self, index: int = 0) -> list[Token]:
        return [token for event in self._produced(index) for token in event.tokens]

    def ids(self, index: int = 0) -> list[int]:
        return [token.token_id for token in self.tokens(index)]

    def text(self, index: int = 0) -> str:
        return "".join(event.text for event in self._produced(index))

    def finish(self, index: int = 0) -> OutputFinished:
        (finish,) = [
            event
            for event in self.events
            if isinstance(event, OutputFinished) and event.output_index == index
        ]
        return finish

    def prompt(self) -> tuple[Token, ...]:
        (scored,) = [event for event in self.events if isinstance(event, PromptScored)]
        return scored.tokens

    def _produced(self, index: int) -> list[TokensProduced]:
        return [
            event
            for event in self.events
            if isinstance(event, TokensProduced) and event.output_index == index
        ]


def run(core: EngineCore, *requests: Request, max_steps: int = 2000) -> list[Collected]:
    """Run requests together until all have ended."""
    opened = [core.add(one) for one in requests]
    emitted: list[Emitted] = []
    for _ in range(max_steps):
        if not core.busy:
            return [collect(one, emitted) for one in opened]
        emitted += core.step()
    raise AssertionError(f"still busy after {max_steps} steps")


def collect(opened: OpenRequest, emitted: list[Emitted]) -> Collected:
    return Collected([event for owner, event in emitted if owner is opened])
