"""Random checkpoints that transformers writes itself. Import it inside tests only."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from reference_engine.model.catalog import TINY

SIZES = {
    "vocab_size": 1024,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "eos_token_id": 0,
    "bos_token_id": None,
    "pad_token_id": None,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def random_checkpoint(family: str, seed: int = 0, **settings: Any) -> transformers.PreTrainedModel:
    """A model of `Llama`, `Qwen2` or `Qwen3` with weights large enough that layers matter."""
    config = getattr(transformers, f"{family}Config")(**{**SIZES, **settings})
    torch.manual_seed(seed)
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval().float()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(1.0 if parameter.dim() == 1 else 0.0, 0.15)
    return model


def save(model: transformers.PreTrainedModel, directory: Path, **options: Any) -> Path:
    """The directory that transformers writes, with the tokenizer of `tiny`."""
    model.save_pretrained(directory, **options)
    shutil.copy(TINY / "tokenizer.json", directory)
    return directory


def older_spelling(directory: Path) -> None:
    """Rewrite config.json to what transformers 4 wrote: base and scaling in fields of their own."""
    path = directory / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    path.write_text(json.dumps(config))


@torch.no_grad()
def logits(model: transformers.PreTrainedModel, ids: list[int]) -> Tensor:
    """[len(ids), vocab] of one sequence."""
    return model(torch.tensor([ids])).logits[0]


@torch.no_grad()
def greedy(model: transformers.PreTrainedModel, prompt: list[int], new_tokens: int) -> list[int]:
    """The new tokens of generate, its end token included."""
    out = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        do_sample=False,
        max_new_tokens=new_tokens,
        pad_token_id=0,
    )
    return out[0, len(prompt) :].tolist()
