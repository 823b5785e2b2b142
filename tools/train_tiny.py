"""Train the checked-in `tiny` model on the running CPython's own library (PSF licence).

    GOMP_SPINCOUNT=0 python tools/train_tiny.py --minutes 6 --threads 2

Writes a Hugging Face directory with a model card. The seed fixes the data order and the initial
weights; the result still depends on the machine, because the minutes limit the steps.
"""

import argparse
import json
import math
import random
import re
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from torch.nn import functional

from reference_engine.kernels.rope_store import rotate
from reference_engine.model.config import ModelConfig
from reference_engine.model.llama import Llama

ROOT = Path(__file__).resolve().parent.parent
EOS = "<|endoftext|>"
SPECIAL_TOKENS = [EOS, *(f"<|reserved_{i}|>" for i in range(1, 8))]
EXCLUDED_PARTS = {"test", "tests", "lib2to3", "idlelib", "site-packages", "dist-packages",
                  "ensurepip", "turtledemo", "encodings", "pydoc_data"}  # fmt: skip
FOREIGN = re.compile(
    r"SPDX-License|permission is hereby|permission to use, copy|redistribution and use|"
    r"all rights reserved|\bGNU\b|copyright(?!.*python software foundation)",
    re.IGNORECASE,
)
CHAT_TEMPLATE = (
    "{% for message in messages %}# {{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}# assistant:{% endif %}"
)
CONTEXT = 256
BATCH = 16
PEAK_RATE = 4e-3
FLOOR_RATE = 1e-4
WARMUP_STEPS = 50
CONFIG = ModelConfig(
    architecture="LlamaForCausalLM",
    vocab_size=1024,
    hidden_size=128,
    intermediate_size=384,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=32,
    rms_norm_eps=1e-5,
    rope_theta=10000.0,
    max_position_embeddings=2048,
    tie_word_embeddings=True,
    eos_token_ids=(0,),
    bos_token_id=None,
)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents split into a training and a validation part."""

    train: list[str]
    validation: list[str]
    sources: list[str]


def read_corpus() -> Corpus:
    """The library's sources, without tests, tables and files that carry another licence."""
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    texts: list[str] = []
    for path in sorted(stdlib.rglob("*.py")):
        if EXCLUDED_PARTS.intersection(path.relative_to(stdlib).parts):
            continue
        text = path.read_text("utf-8", errors="replace")
        if len(text) > 200 and "\ufffd" not in text and not FOREIGN.search(text):
            texts.append(text)
    sources = [f"{len(texts)} files of the CPython {sys.version.split()[0]} standard library (PSF)"]
    licence = ROOT / "LICENSE"
    train = [text for i, text in enumerate(texts) if i % 40 != 7]
    validation = [text for i, text in enumerate(texts) if i % 40 == 7]
    if licence.is_file():
        train.append(licence.read_text("utf-8"))
        sources.append("the repository's licence text (Apache-2.0)")
    return Corpus(train, validation, sources)


def train_tokenizer(texts: list[str]) -> Tokenizer:
    """A byte-level BPE: all 256 bytes are tokens, so every text can be encoded."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=CONFIG.vocab_size,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> Tensor:
    """All documents one after the other, each ended by EOS."""
    ids: list[int] = []
    for encoding in tokenizer.encode_batch(texts):
        ids += encoding.ids
        ids.append(0)
    return torch.tensor(ids)


def attend(layer: int, qk: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Dense causal attention over windows of CONTEXT tokens, each shaped [windows, heads, ...]."""
    del layer
    q, k = rotate(qk, cos, sin).tensor_split((-v.shape[1],), dim=1)
    q, k, v = (x.view(-1, CONTEXT, *x.shape[1:]).transpose(1, 2) for x in (q, k, v))
    out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return out.transpose(1, 2).flatten(0, 1)


def loss_of(model: Llama, windows: Tensor) -> Tensor:
    """Mean cross entropy in nats of windows [n, CONTEXT + 1]."""
    positions = torch.arange(CONTEXT).repeat(windows.shape[0])
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=model.training):
        states = model.hidden_states(windows[:, :-1].flatten(), positions, attend)
        logits = model.logits(states)
    return functional.cross_entropy(logits.float(), windows[:, 1:].flatten())


def batches(ids: Tensor, seed: int) -> Iterator[Tensor]:
    """Endless shuffled windows [BATCH, CONTEXT + 1]; every epoch starts at another offset."""
    rng = random.Random(seed)  # noqa: S311  # shuffles, guards nothing
    while True:
        starts = list(range(rng.randrange(CONTEXT), len(ids) - CONTEXT - 1, CONTEXT))
        rng.shuffle(starts)
        for i in range(0, len(starts) - BATCH + 1, BATCH):
            yield torch.stack([ids[s : s + CONTEXT + 1] for s in starts[i : i + BATCH]])


def initialise(model: Llama, seed: int) -> None:
    """Normal weights of deviation 0.02, smaller where a layer writes to the residual stream."""
    torch.manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            deep = name.endswith(("o_proj.weight", "down_proj.weight"))
            std = 0.02 / math.sqrt(2 * CONFIG.num_layers) if deep else 0.02
            torch.nn.init.normal_(parameter, std=std)


def rate_at(step: int, progress: float) -> float:
    """Learning rate: linear warm-up, then cosine over the share of the time that is used."""
    if step < WARMUP_STEPS:
        return PEAK_RATE * (step + 1) / WARMUP_STEPS
    return FLOOR_RATE + (PEAK_RATE - FLOOR_RATE) * 0.5 * (1 + math.cos(math.pi * progress))


def train(model: Llama, ids: Tensor, minutes: float, seed: int) -> int:
    """AdamW until the minutes are over; returns the number of steps."""
    decayed = [p for p in model.parameters() if p.dim() == 2]
    plain = [p for p in model.parameters() if p.dim() != 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.95))
    model.train()
    started = time.monotonic()
    for step, windows in enumerate(batches(ids, seed)):
        progress = (time.monotonic() - started) / (minutes * 60)
        if progress >= 1:
            return step
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, progress)
        loss = loss_of(model, windows)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves Tensor.backward untyped
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 25 == 0:
            print(f"{progress:5.1%} step {step} loss {loss.item():.3f}", flush=True)
    raise AssertionError("batches() never ends")


@torch.inference_mode()
def validate(model: Llama, ids: Tensor) -> float:
    """Mean cross entropy in nats over the validation text, with the weights as stored."""
    model.eval()
    count = (len(ids) - 1) // CONTEXT
    windows = torch.stack([ids[i * CONTEXT : (i + 1) * CONTEXT + 1] for i in range(count)])
    losses = [loss_of(model, part).item() * len(part) for part in windows.chunk(-(-count // BATCH))]
    return sum(losses) / count


def write_json(path: Path, value: dict[str, object]) -> None:
    """Write indented JSON with a last newline."""
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")


def write_configs(out: Path) -> None:
    """config.json, generation_config.json and tokenizer_config.json."""
    write_json(out / "config.json", {
        "architectures": [CONFIG.architecture],
        "model_type": "llama",
        "hidden_act": "silu",
        "vocab_size": CONFIG.vocab_size,
        "hidden_size": CONFIG.hidden_size,
        "intermediate_size": CONFIG.intermediate_size,
        "num_hidden_layers": CONFIG.num_layers,
        "num_attention_heads": CONFIG.num_heads,
        "num_key_value_heads": CONFIG.num_kv_heads,
        "head_dim": CONFIG.head_dim,
        "rms_norm_eps": CONFIG.rms_norm_eps,
        "rope_theta": CONFIG.rope_theta,
        "max_position_embeddings": CONFIG.max_position_embeddings,
        "tie_word_embeddings": CONFIG.tie_word_embeddings,
        "bos_token_id": None,
        "eos_token_id": CONFIG.eos_token_ids[0],
        "torch_dtype": "bfloat16",
    })  # fmt: skip
    write_json(out / "generation_config.json", {"eos_token_id": list(CONFIG.eos_token_ids)})
    write_json(out / "tokenizer_config.json", {"eos_token": EOS, "chat_template": CHAT_TEMPLATE})


CARD = """\
---
license: apache-2.0
language: en
---
# tiny

A Llama of {parameters:,} parameters for fast tests and demonstrations of the reference engine. It
writes text shaped like Python and knows nothing; it is no assistant.

| | |
| --- | --- |
| shape | {config.num_layers} layers, width {config.hidden_size}, {config.num_heads} query and \
{config.num_kv_heads} KV heads of {config.head_dim}, MLP {config.intermediate_size}, tied head |
| tokenizer | byte-level BPE, {config.vocab_size} tokens, all 256 bytes, `{eos}` ends a document |
| positions | trained on windows of {context}, runs up to {config.max_position_embeddings} |
| text | {sources} |
| tokens | {tokens:,} in the text, {seen:,} seen in {steps} steps |
| validation loss | {loss:.3f} nats a token on {held_out} held-out files (uniform: {uniform:.2f}) |
| made by | `{command}` |

The text leaves out tests, tables, bundled packages and every file that names a licence or a
copyright holder other than the Python Software Foundation. The Python licence allows derived
works; the notice: Copyright (c) 2001 Python Software Foundation; All Rights Reserved. The weights
may be used under Apache-2.0, like the repository.
"""


def save(model: Llama, tokenizer: Tokenizer, out: Path) -> None:
    """Round the weights to bfloat16, as stored, and write everything but the card."""
    out.mkdir(parents=True, exist_ok=True)
    stored = {name: value.to(torch.bfloat16) for name, value in model.state_dict().items()}
    model.load_state_dict(stored)
    weights = out / "model.safetensors"
    save_file(stored, weights, metadata={"format": "pt"})
    weights.chmod(0o644)  # safetensors makes files that only their owner can read
    tokenizer.save(str(out / "tokenizer.json"))
    write_configs(out)


def main() -> None:
    """Train, save, validate and write the card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=6.0, help="training time")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "reference_engine" / "models" / "tiny")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    corpus = read_corpus()
    tokenizer = train_tokenizer(corpus.train)
    ids = encode(tokenizer, corpus.train)
    print(f"{len(corpus.train)} documents, {len(ids):,} tokens", flush=True)
    model = Llama(CONFIG)
    initialise(model, options.seed)
    steps = train(model, ids, options.minutes, options.seed)
    save(model, tokenizer, options.out)
    loss = validate(model, encode(tokenizer, corpus.validation))
    card = CARD.format(
        config=CONFIG, eos=EOS, context=CONTEXT, sources="; ".join(corpus.sources),
        parameters=sum(p.numel() for p in model.parameters()), tokens=len(ids),
        seen=steps * BATCH * CONTEXT, steps=steps, loss=loss, uniform=math.log(CONFIG.vocab_size),
        held_out=len(corpus.validation),
        command=f"python tools/train_tiny.py --minutes {options.minutes:g}"
        f" --threads {options.threads} --seed {options.seed}",
    )  # fmt: skip
    (options.out / "README.md").write_text(card, "utf-8")
    print(f"{steps} steps, validation loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
