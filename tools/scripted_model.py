"""Write the scripted model: one set of weights as a Hugging Face directory and as a GGUF file.

    python tools/scripted_model.py build/scripted

A Llama of one layer whose attention and feed-forward parts add nothing: embeddings are one-hot,
so a row of the head is all that decides what follows a token. The same run gives the same bytes.
"""

import argparse
import itertools
import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conformance.runtimes.script import BAD, COIN_PROMPT, EMO, HEADS, LOOP, RUN, TAILS

Floats = npt.NDArray[np.float32]

HF_NAME, GGUF_NAME = "hf", "scripted.gguf"
EOS = "<|endoftext|>"
SIZE = 512  # tokens, and with one-hot embeddings the hidden size as well
HEADS_OF_ATTENTION, KV_HEADS, HEAD_DIM = 8, 2, 64
FEED_FORWARD = 64
CONTEXT = 2048
EPSILON = 1e-6
THETA = 10000.0
# exp(12) against 511 tokens of logit 0: p = 0.99687.
LOGIT = 12.0
# Two such tokens leave 2e-8 to the others, so a coin never shows anything else.
COIN_LOGIT = 24.0
# Where a grammar forbids what would follow, the end is the likeliest of what it allows.
END_LOGIT = 6.0
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
_GGUF_MAGIC, _GGUF_VERSION, _ALIGNMENT = b"GGUF", 3, 32
_NORMAL, _CONTROL, _UNUSED = 1, 3, 5
_U32, _F32, _BOOL, _STRING, _ARRAY, _I32 = 4, 6, 7, 8, 9, 5


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """tokens: their byte-level spelling, by id. merges: pairs, the earlier the stronger. used:
    how many of the tokens text can be made of; the others only fill the table.
    """

    tokens: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]
    used: int

    def id(self, token: bytes) -> int:
        """The id of the token with these bytes."""
        spelling = _spelled(token)
        return self.tokens.index(spelling)


def _byte_spellings() -> tuple[str, ...]:
    """Each byte as the one character that GPT-2's byte-level vocabularies write for it."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in visible)
    spelling = {byte: chr(byte) for byte in visible}
    spelling |= {byte: chr(256 + place) for place, byte in enumerate(others)}
    return tuple(spelling[byte] for byte in range(256))


_BYTES = _byte_spellings()


def _spelled(token: bytes) -> str:
    return "".join(_BYTES[byte] for byte in token)


def prompt_words() -> dict[str, str]:
    """The last word of each script's prompt with its space, by name of the script."""
    scripts = {"run": RUN, "emo": EMO, "loop": LOOP, "bad": BAD}
    prompts = {name: script.prompt for name, script in scripts.items()} | {"coin": COIN_PROMPT}
    return {name: f" {prompt.split()[-1]}" for name, prompt in prompts.items()}


def vocabulary() -> Vocabulary:
    """The end token, the 256 bytes, and every word with the beginnings that merge into it."""
    scripts = (*RUN.tokens, *EMO.tokens, *LOOP.tokens[:2], *BAD.tokens)
    words = [*scripts, HEADS.encode(), TAILS.encode()]
    words += [word.encode() for word in prompt_words().values()]
    tokens = [EOS, *_BYTES]
    merges: list[tuple[str, str]] = []
    for word in words:
        spelling = _spelled(word)
        for size in range(2, len(spelling) + 1):
            pair = spelling[: size - 1], spelling[size - 1]
            if pair not in merges:
                merges.append(pair)
                tokens.append(spelling[:size])
    used = len(tokens)
    tokens += [f"<|unused_{place}|>" for place in range(used, SIZE)]
    return Vocabulary(tuple(tokens), tuple(merges), used)


def next_logits(words: Vocabulary) -> Floats:
    """Logits [last token, next token]: where a script goes on, it goes on; anything else begins
    the run.
    """
    table = np.zeros((SIZE, SIZE), np.float32)
    end, first = 0, words.id(RUN.tokens[0])
    table[:, first] = LOGIT
    table[:, end] = END_LOGIT

    def follow(last: int, *after: int, logit: float = LOGIT) -> None:
        table[last] = 0.0
        table[last, list(after)] = logit

    follow(end, end)
    begin = {name: words.id(word.encode()) for name, word in prompt_words().items()}
    for name, script in (("run", RUN), ("emo", EMO), ("bad", BAD)):
        ids = [begin[name], *(words.id(token) for token in script.tokens), end]
        for last, after in itertools.pairwise(ids):
            follow(last, after)
    ping, pong = (words.id(token) for token in LOOP.tokens[:2])
    follow(begin["loop"], ping)
    follow(ping, pong)
    follow(pong, ping)
    sides = words.id(HEADS.encode()), words.id(TAILS.encode())
    follow(begin["coin"], *sides, logit=COIN_LOGIT)
    for side in sides:
        follow(side, end)
    return table


def weights(words: Vocabulary) -> dict[str, Floats]:
    """All tensors under Hugging Face's names, shaped [out, in]."""
    layer = "model.layers.0."
    kv = KV_HEADS * HEAD_DIM
    # After the norm a one-hot state has the length sqrt(SIZE), which the head divides away.
    head = (next_logits(words).T / math.sqrt(SIZE)).astype(np.float32)
    nothing = {
        "self_attn.q_proj": (SIZE, SIZE),
        "self_attn.k_proj": (kv, SIZE),
        "self_attn.v_proj": (kv, SIZE),
        "self_attn.o_proj": (SIZE, SIZE),
        "mlp.gate_proj": (FEED_FORWARD, SIZE),
        "mlp.up_proj": (FEED_FORWARD, SIZE),
        "mlp.down_proj": (SIZE, FEED_FORWARD),
    }
    return {
        "model.embed_tokens.weight": np.eye(SIZE, dtype=np.float32),
        "model.norm.weight": np.ones(SIZE, np.float32),
        "lm_head.weight": np.ascontiguousarray(head),
        f"{layer}input_layernorm.weight": np.ones(SIZE, np.float32),
        f"{layer}post_attention_layernorm.weight": np.ones(SIZE, np.float32),
        **{f"{layer}{name}.weight": np.zeros(shape, np.float32) for name, shape in nothing.items()},
    }


def write_hf(folder: Path, words: Vocabulary) -> None:
    """Configuration, weights and tokenizer as a Hugging Face directory."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": SIZE,
        "hidden_size": SIZE,
        "intermediate_size": FEED_FORWARD,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS_OF_ATTENTION,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": EPSILON,
        "rope_theta": THETA,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": 0,
        "torch_dtype": "float32",
    }
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": EOS,
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
    }
    files = {
        "config.json": config,
        "generation_config.json": {"eos_token_id": 0},
        "tokenizer.json": _tokenizer(words),
        "tokenizer_config.json": tokenizer_config,
    }
    for name, value in files.items():
        text = json.dumps(value, ensure_ascii=False, indent=1)
        (folder / name).write_text(text + "\n", "utf-8")
    (folder / "model.safetensors").write_bytes(_safetensors(weights(words)))


def _tokenizer(words: Vocabulary) -> dict[str, Any]:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": 0, "content": EOS, **flags, "special": True}],
        "normalizer": None,
        "pre_tokenizer": {**byte_level, "use_regex": True},
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: number for number, token in enumerate(words.tokens)},
            "merges": [list(pair) for pair in words.merges],
        },
    }


def _safetensors(tensors: Mapping[str, Floats]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, tensor in sorted(tensors.items()):
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [place, place + tensor.nbytes],
        }
        place += tensor.nbytes
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    body = b"".join(tensor.astype("<f4").tobytes() for _, tensor in sorted(tensors.items()))
    return struct.pack("<Q", len(head)) + head + body


def write_gguf(path: Path, words: Vocabulary) -> None:
    """The same model as one file of GGUF version 3, all tensors float32."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {_gguf_name(name): tensor for name, tensor in sorted(weights(words).items())}
    values = list(_metadata(words))
    head = struct.pack("<4sIQQ", _GGUF_MAGIC, _GGUF_VERSION, len(tensors), len(values))
    head += b"".join(values)
    place = 0
    for name, tensor in tensors.items():
        shape = tensor.shape[::-1]  # the fastest dimension first
        head += _text(name) + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}QIQ", *shape, 0, place)
        place += tensor.nbytes  # a multiple of the alignment for every shape here
    head += b"\0" * (-len(head) % _ALIGNMENT)
    path.write_bytes(head + b"".join(tensor.astype("<f4").tobytes() for tensor in tensors.values()))


def _metadata(words: Vocabulary) -> Iterator[bytes]:
    """Keys and values; queries and keys are zero, so GGUF's own order of their rows is the same."""
    texts = {
        "general.architecture": "llama",
        "general.name": "scripted",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.chat_template": TEMPLATE,
    }
    numbers = {
        "general.file_type": 0,
        "general.alignment": _ALIGNMENT,
        "llama.block_count": 1,
        "llama.context_length": CONTEXT,
        "llama.embedding_length": SIZE,
        "llama.feed_forward_length": FEED_FORWARD,
        "llama.attention.head_count": HEADS_OF_ATTENTION,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.rope.dimension_count": HEAD_DIM,
        "llama.vocab_size": SIZE,
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 0,
    }
    reals = {"llama.attention.layer_norm_rms_epsilon": EPSILON, "llama.rope.freq_base": THETA}
    for key, text in texts.items():
        yield _text(key) + struct.pack("<I", _STRING) + _text(text)
    for key, number in numbers.items():
        yield _text(key) + struct.pack("<II", _U32, number)
    for key, real in reals.items():
        yield _text(key) + struct.pack("<If", _F32, real)
    yield _text("tokenizer.ggml.add_bos_token") + struct.pack("<IB", _BOOL, 0)
    merges = [" ".join(pair) for pair in words.merges]
    for key, strings in (("tokens", words.tokens), ("merges", merges)):
        head = struct.pack("<IIQ", _ARRAY, _STRING, len(strings))
        yield _text(f"tokenizer.ggml.{key}") + head + b"".join(map(_text, strings))
    kinds = [_CONTROL, *[_NORMAL] * (words.used - 1), *[_UNUSED] * (SIZE - words.used)]
    head = struct.pack("<IIQ", _ARRAY, _I32, len(kinds))
    yield _text("tokenizer.ggml.token_type") + head + struct.pack(f"<{len(kinds)}i", *kinds)


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


_GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers.0.input_layernorm": "blk.0.attn_norm",
    "model.layers.0.post_attention_layernorm": "blk.0.ffn_norm",
    "model.layers.0.self_attn.q_proj": "blk.0.attn_q",
    "model.layers.0.self_attn.k_proj": "blk.0.attn_k",
    "model.layers.0.self_attn.v_proj": "blk.0.attn_v",
    "model.layers.0.self_attn.o_proj": "blk.0.attn_output",
    "model.layers.0.mlp.gate_proj": "blk.0.ffn_gate",
    "model.layers.0.mlp.up_proj": "blk.0.ffn_up",
    "model.layers.0.mlp.down_proj": "blk.0.ffn_down",
}


def _gguf_name(name: str) -> str:
    return _GGUF_NAMES[name.removesuffix(".weight")] + ".weight"


def write_scripted(folder: Path) -> None:
    """Both forms in one directory."""
    words = vocabulary()
    write_hf(folder / HF_NAME, words)
    write_gguf(folder / GGUF_NAME, words)


def main() -> None:
    """Write the model to the directory on the command line."""
    parser = argparse.ArgumentParser(description="Write the scripted model.")
    parser.add_argument("folder", type=Path, help=f"gets {HF_NAME}/ and {GGUF_NAME}")
    folder: Path = parser.parse_args().folder
    write_scripted(folder)
    print(f"{folder / HF_NAME} and {folder / GGUF_NAME}")


if __name__ == "__main__":
    main()
