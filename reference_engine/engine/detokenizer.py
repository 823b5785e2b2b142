"""Text out of tokens, a piece at a time, without ever cutting a code point in two."""

import codecs
from typing import Protocol


class TokenBytes(Protocol):
    """The part of a tokenizer that is needed here."""

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes a token stands for; empty for tokens without text."""
        ...


class Detokenizer:
    """Incremental decoder of one output.

    The pieces joined, with `flush` at the end, are the tokens' bytes decoded as UTF-8 with
    U+FFFD for what is invalid. At most 3 bytes wait inside.
    """

    def __init__(self, tokenizer: TokenBytes) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token_id: int) -> str:
        """The text that became complete with this token."""
        return self._decoder.decode(self._tokenizer.token_bytes(token_id))

    @property
    def incomplete(self) -> bool:
        """Whether bytes of an unfinished code point wait inside."""
        return bool(self._decoder.getstate()[0])

    def flush(self) -> str:
        """The text of what waits inside: U+FFFD for an unfinished code point, else nothing."""
        return self._decoder.decode(b"", final=True)
