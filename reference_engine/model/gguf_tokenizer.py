"""Builds the tokenizer that a GGUF file describes in its metadata."""

from collections.abc import Callable

from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from reference_engine.errors import CheckpointError, UnsupportedModelError
from reference_engine.model.fields import Fields
from reference_engine.model.tokenizer import Tokenizer

_CONTROL, _USER_DEFINED = 3, 4


def _gpt2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _smollm() -> pre_tokenizers.PreTokenizer:
    """Every digit alone, then GPT-2's words."""
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _gpt2()])


PRE_TOKENIZERS: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "gpt-2": _gpt2,
    "smollm": _smollm,
}
"""By tokenizer.ggml.pre, which names how text is cut before the merges."""


def gguf_tokenizer(metadata: Fields, vocab_size: int, eos_token_ids: tuple[int, ...]) -> Tokenizer:
    """A byte-level BPE from tokens, merges and token types.

    Raises CheckpointError naming the field that is wrong, UnsupportedModelError for another kind
    of tokenizer.
    """
    kind, pre = metadata.text("tokenizer.ggml.model"), metadata.text("tokenizer.ggml.pre")
    if kind != "gpt2" or pre not in PRE_TOKENIZERS:
        raise UnsupportedModelError(
            f"{metadata.source}: tokenizer.ggml.model is {kind!r} and tokenizer.ggml.pre is "
            f"{pre!r}, supported: 'gpt2' with {', '.join(PRE_TOKENIZERS)}"
        )
    tokens = _texts(metadata, "tokenizer.ggml.tokens")
    backend = Backend(_bpe(metadata, tokens))
    backend.pre_tokenizer = PRE_TOKENIZERS[pre]()
    backend.decoder = decoders.ByteLevel()
    _add_special_tokens(backend, metadata, tokens)
    named = {}
    for role in ("bos", "eos"):
        ids = metadata.token_ids(f"tokenizer.ggml.{role}_token_id")
        if ids and ids[0] < len(tokens):
            named[f"{role}_token"] = tokens[ids[0]]
    if metadata.boolean("tokenizer.ggml.add_bos_token", default=False) and "bos_token" in named:
        bos = named["bos_token"]
        backend.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokens.index(bos))]
        )
    template = metadata.text("tokenizer.chat_template")
    return Tokenizer(backend, vocab_size, eos_token_ids, template, named)


def _texts(metadata: Fields, name: str) -> list[str]:
    value = metadata.values.get(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CheckpointError(f"{metadata.source}: {name} is missing or no list of strings")
    return value


def _bpe(metadata: Fields, tokens: list[str]) -> models.BPE:
    vocab = {token: i for i, token in enumerate(tokens)}
    if len(vocab) < len(tokens):
        raise CheckpointError(f"{metadata.source}: tokenizer.ggml.tokens has a token twice")
    merges = []
    for line in _texts(metadata, "tokenizer.ggml.merges"):
        left, _, right = line.partition(" ")
        if left not in vocab or right not in vocab or left + right not in vocab:
            raise CheckpointError(
                f"{metadata.source}: tokenizer.ggml.merges has {line!r}, which is no pair of tokens"
            )
        merges.append((left, right))
    return models.BPE(vocab=vocab, merges=merges)


def _add_special_tokens(backend: Backend, metadata: Fields, tokens: list[str]) -> None:
    kinds = metadata.values.get("tokenizer.ggml.token_type") or [1] * len(tokens)
    if not isinstance(kinds, list) or len(kinds) != len(tokens):
        raise CheckpointError(
            f"{metadata.source}: tokenizer.ggml.token_type is no list of {len(tokens)} numbers"
        )
    for token, kind in zip(tokens, kinds, strict=True):
        if kind == _CONTROL:
            backend.add_special_tokens([AddedToken(token, special=True, normalized=False)])
        elif kind == _USER_DEFINED:
            backend.add_tokens([AddedToken(token, normalized=False)])
