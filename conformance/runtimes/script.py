"""The scripted model: what it answers is known, so a check can expect exact text.

A one-layer Llama whose next token is a function of the last one; its chat template is the
concatenation of the contents, so the last word of the prompt picks a script. p(next) = 0.99687.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Script:
    """One script. prompt: ends with its word. tokens: the bytes of each, without the end token;
    ends: whether the model then ends by itself.
    """

    prompt: str
    tokens: tuple[bytes, ...]
    ends: bool = True

    @property
    def text(self) -> str:
        """All of it."""
        return self.upto(len(self.tokens))

    def upto(self, count: int) -> str:
        """The text of the first `count` tokens; a character cut at the end is left out."""
        return b"".join(self.tokens[:count]).decode("utf-8", errors="ignore")

    def counts(self, kept: int) -> frozenset[int]:
        """Completion tokens that may be reported for `kept` tokens and a natural end: whether the
        end token counts is the server's affair.
        """
        return frozenset({kept, kept + 1})


_WORDS = "Alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omicron"
# Enough of the endless one for any max_tokens that a check uses.
_ENDLESS = 4096

RUN = Script(
    "Please RUN",
    tuple(
        (word if number == 0 else f" {word}").encode() for number, word in enumerate(_WORDS.split())
    ),
)
EMO = Script("Please EMO", (*(bytes([each]) for each in "\U0001f600".encode()), b" sigma"))
# A byte that no UTF-8 text has: servers that decode strictly fail inside the stream.
BAD = Script("Please BAD", (b"Wrong", b"\xff"))
LOOP = Script("Please LOOP", (b" ping", b" pong") * (_ENDLESS // 2), ends=False)
HEADS, TAILS = " heads", " tails"
COIN_PROMPT = "Please COIN"
