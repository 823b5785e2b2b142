"""Compiled guides of the tiny model: what they accept, and random outputs of them."""

import random
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from reference_engine.errors import GuideError
from reference_engine.guided.guide import Grammar, Guide, GuideKind
from reference_engine.guided.guides import Guides
from reference_engine.guided.matcher import Matcher
from reference_engine.model.catalog import TINY
from reference_engine.model.load_hf import load_hf
from reference_engine.model.tokenizer import Tokenizer

# Tokens after which a random output looks for its end.
LONG = 60


@cache
def tokenizer() -> Tokenizer:
    return load_hf(TINY)[1]


@cache
def guides() -> Guides:
    return Guides(tokenizer())


@dataclass(frozen=True)
class Language:
    """One compiled guide."""

    grammar: Grammar

    def accepts(self, text: str) -> bool:
        """Whether the text is a whole output; control tokens may be spelled out."""
        matcher = guides().matcher(self.grammar)
        ids = tokenizer().encode(text)
        return all(map(matcher.advance, ids)) and matcher.complete

    def allowed(self, matcher: Matcher) -> list[int]:
        """Ids that the mask allows."""
        words = np.zeros(-(-tokenizer().vocab_size // 32), dtype=np.int32)
        matcher.fill(words.ctypes.data, words.nbytes)
        assert not matcher.failed
        return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()

    def random_output(self, rng: random.Random, most: int = 400) -> str | None:
        """A whole output of tokens drawn at random; None when it got too long."""
        matcher = guides().matcher(self.grammar)
        eos = tokenizer().eos_token_ids
        ids: list[int] = []
        while len(ids) < most:
            allowed = self.allowed(matcher)
            ends = [one for one in allowed if one in eos]
            others = [one for one in allowed if one not in eos]
            if ends and (not others or rng.random() < 0.3):
                assert matcher.advance(ends[0])
                return tokenizer().decode(ids)
            ids.append(rng.choice(others if len(ids) < LONG else _closing(others)))
            assert matcher.advance(ids[-1]), "the matcher refuses what its mask allows"
        return None


def _closing(ids: list[int]) -> list[int]:
    """Prefer the tokens that bring JSON to its end."""
    return [one for one in ids if tokenizer().token_bytes(one) in b'"}]:,0.-'] or ids


def language(kind: GuideKind, text: str = "", choices: tuple[str, ...] = ()) -> Language:
    return Language(guides().compile(Guide(kind, text, choices)))


def refusal(kind: GuideKind, text: str = "", choices: tuple[str, ...] = ()) -> str:
    """The message with which a guide is refused."""
    with pytest.raises(GuideError) as caught:
        guides().compile(Guide(kind, text, choices))
    return str(caught.value)
