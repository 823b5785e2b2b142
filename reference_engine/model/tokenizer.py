"""Text to token ids and back, with the exact bytes of every token."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer as Backend

from reference_engine.errors import CheckpointError, UnsupportedModelError
from reference_engine.model.byte_tokens import Spelling, byte_level, metaspace
from reference_engine.model.chat import ChatTemplate


class Tokenizer:
    """Wraps a `tokenizers` back end; decoding is the plain concatenation of token bytes.

    Hugging Face's decoder is not used: it joins and cleans up, so that the text of two halves
    isn't the text of the whole. Here it is, which is what streaming needs.
    """

    def __init__(
        self,
        backend: Backend,
        vocab_size: int,
        eos_token_ids: Iterable[int] = (),
        chat_template: str | None = None,
        special_tokens: Mapping[str, str] | None = None,
    ) -> None:
        defined = backend.get_vocab_size(with_added_tokens=True)
        if defined > vocab_size:
            raise CheckpointError(
                f"the tokenizer defines {defined} tokens, the model has {vocab_size} (vocab_size)"
            )
        self._backend = backend
        self._bytes, self._special = _token_table(backend, vocab_size)
        self._chat = ChatTemplate(chat_template, special_tokens or {}) if chat_template else None
        self.vocab_size = vocab_size
        """Ids are 0 to vocab_size - 1, as in the model; ids that no token uses have no bytes."""
        self.eos_token_ids = frozenset(eos_token_ids)
        """Ids that end a generation."""

    @property
    def special_token_ids(self) -> frozenset[int]:
        """Ids of control tokens, which add no text."""
        return frozenset(self._special)

    @property
    def has_chat_template(self) -> bool:
        return self._chat is not None

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Token ids of a text; spelled-out special tokens are recognised.

        With `add_special_tokens` also what the model wants around a text (for example BOS), which
        a chat prompt contains already.
        """
        ids: list[int] = self._backend.encode(text, add_special_tokens=add_special_tokens).ids
        return ids

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that the token adds to the text, b"" for a special or unused one.

        A token can be a part of a UTF-8 character. Raises ValueError outside the vocabulary.
        """
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(f"token id {token_id} is not in 0..{self.vocab_size - 1}")
        return self._bytes[token_id]

    def token_text(self, token_id: int) -> str:
        """The token for display: name of a special one, U+FFFD for parts of characters."""
        return self._special.get(token_id) or self.token_bytes(token_id).decode(errors="replace")

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids without special tokens; invalid UTF-8 becomes U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode(errors="replace")

    def chat_prompt(self, messages: list[dict[str, str]]) -> str | None:
        """The prompt of a chat, None if the model has no chat template.

        Raises ChatTemplateError if the template refuses the messages.
        """
        return self._chat.render(messages) if self._chat else None


def _token_table(backend: Backend, vocab_size: int) -> tuple[list[bytes], dict[int, str]]:
    """Bytes of every id, and the names of the special ones."""
    spelling = _spelling(json.loads(backend.to_str()))
    table = [b""] * vocab_size
    special: dict[int, str] = {}
    added = backend.get_added_tokens_decoder()
    for token, token_id in backend.get_vocab(with_added_tokens=True).items():
        if token_id >= vocab_size:
            raise CheckpointError(
                f"the tokenizer's token {token!r} has id {token_id}, beyond vocab_size {vocab_size}"
            )
        entry = added.get(token_id)
        if entry is None:
            table[token_id] = spelling(token)
        elif entry.special:
            special[token_id] = token
        else:
            table[token_id] = token.encode()
    return table, special


def _spelling(description: dict[str, Any]) -> Spelling:
    """How this vocabulary writes bytes, told by the decoder of its tokenizer.json."""
    decoder = description.get("decoder") or {}
    parts = decoder.get("decoders", [decoder])
    kinds = {part.get("type") for part in parts}
    if "ByteLevel" in kinds:
        return byte_level
    if kinds & {"ByteFallback", "Metaspace"}:
        return metaspace
    raise UnsupportedModelError(
        f"tokenizer.json: decoder.type is {decoder.get('type')!r}, expected ByteLevel, or "
        "Sequence with ByteFallback"
    )
