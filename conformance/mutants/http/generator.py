"""The tokens of the scripted model with all that sampling options do to them. No HTTP here."""

from __future__ import annotations

import codecs
import hashlib
import json
import math
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.runtimes.script import BAD, COIN_PROMPT, EMO, HEADS, LOOP, RUN, TAILS, Script

LOGPROB = math.log(0.99687)
_SCRIPTS: Mapping[str, Script] = {each.prompt.split()[-1]: each for each in (RUN, EMO, LOOP, BAD)}


class BrokenOutputError(Exception):
    """The model's output is no text, which shows only after a part of it was sent."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What an API's request says about one answer. stop: strings. forced: text that a schema
    leaves no choice about.
    """

    prompt: str
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    temperature: float = 1.0
    forced: str = ""


@dataclass(slots=True)
class Piece:
    """Text that can be sent, and the tokens that it closes, with their log probabilities."""

    text: str
    tokens: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class Generation:
    """One answer. `pieces` is consumed once; then finish and completion_tokens are known."""

    sampling: Sampling
    index: int = 0
    finish: str = ""
    completion_tokens: int = 0

    def pieces(self) -> Iterator[Piece]:
        """Text as it may go out: whole characters, nothing that may begin a stop string. Raises
        BrokenOutputError.
        """
        decoder = codecs.getincrementaldecoder("utf-8")()
        held, tokens = "", list[bytes]()
        for token in self._tokens():
            self.completion_tokens += 1
            tokens.append(token)
            try:
                held += decoder.decode(token)
            except UnicodeDecodeError as error:
                raise BrokenOutputError("the output is no UTF-8") from error
            cut = _first_stop(held, self.sampling.stop)
            if cut is not None:
                self.finish = "stop"
                yield Piece(held[:cut], tokens)
                return
            ready = len(held) - _held_back(held, self.sampling.stop)
            if ready:
                yield Piece(held[:ready], tokens)
                held, tokens = held[ready:], []
        if self.finish == "stop":
            self.completion_tokens += 1  # the end token
        if held or tokens:
            yield Piece(held, tokens)

    def _tokens(self) -> Iterator[bytes]:
        tokens, ends = self._scripted()
        limit = self.sampling.max_tokens
        for number, token in enumerate(tokens):
            if limit is not None and number >= limit:
                self.finish = "length"
                return
            yield token
        cut = not ends or (limit is not None and limit <= len(tokens))
        self.finish = "length" if cut else "stop"

    def _scripted(self) -> tuple[tuple[bytes, ...], bool]:
        sampling = self.sampling
        if sampling.forced:
            return tuple(
                sampling.forced[i : i + 4].encode() for i in range(0, len(sampling.forced), 4)
            ), True
        words = sampling.prompt.split()
        word = words[-1] if words else ""
        if word == COIN_PROMPT.split()[-1]:
            return (self._coin(),), True
        script = _SCRIPTS.get(word)
        if script is not None:
            return script.tokens, script.ends
        return self._varied(), True

    def _varied(self) -> tuple[bytes, ...]:
        """For a prompt of no script: the run's words, in an order that sampling picks."""
        first = 0 if self.sampling.temperature == 0 else self._drawn() % len(RUN.tokens)
        return (*RUN.tokens[first:], *RUN.tokens[:first])

    def _drawn(self) -> int:
        seed = secrets.randbits(64) if self.sampling.seed is None else self.sampling.seed
        return hashlib.sha256(f"{seed}:{self.index}".encode()).digest()[0]

    def _coin(self) -> bytes:
        if self.sampling.temperature == 0:
            return HEADS.encode()
        return (HEADS if self._drawn() < 128 else TAILS).encode()


def prompt_tokens(prompt: str) -> int:
    """Tokens of a prompt: its words, and one at the start."""
    return len(prompt.split()) + 1


def example_of(schema: Any) -> str:
    """JSON text that a simple schema accepts. Raises ValueError for no schema."""
    return json.dumps(_example(schema))


def _example(schema: Any) -> Any:
    if not isinstance(schema, dict):
        raise ValueError("no schema")  # noqa: TRY004 - one error for all that is none
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            named: dict[str, Any] = schema.get("properties", {})
            return {name: _example(named[name]) for name in schema.get("required", list(named))}
        case "array":
            return [_example(schema.get("items", {}))] * schema.get("minItems", 1)
        case "string":
            return "ping"
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null" | None:
            return None
        case _:
            raise ValueError("no schema")


def _first_stop(text: str, stops: tuple[str, ...]) -> int | None:
    found = [at for stop in stops if (at := text.find(stop)) >= 0]
    return min(found, default=None)


def _held_back(text: str, stops: tuple[str, ...]) -> int:
    """Characters at the end that may begin a stop string."""
    return max(
        (
            size
            for stop in stops
            for size in range(1, min(len(stop), len(text) + 1))
            if text.endswith(stop[:size])
        ),
        default=0,
    )
