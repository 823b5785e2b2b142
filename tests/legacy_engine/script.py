"""What the toy engine writes: tokens from a fixed tale, decided before the first is sent."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field

from oe_wire import v1
from tests.legacy_engine.behaviour import Behaviour

# 0 padding, 1 begin, 2 end, then one token for each printable ASCII character.
EOS = 2
_FIRST = 3
VOCABULARY = _FIRST + 95
TALE = (
    "an old cat sat on the mat near the stone oven. it ate a tart and then it went to rest in "
    "the tent at noon. no other cat has ever eaten a better tart.\n"
)
# Tokens after which the tale ends by itself, unless the caller wants more.
SHORTEST, SPREAD = 9, 6


def encode(text: str) -> list[int]:
    """One token for each character; what is not printable ASCII counts as a question mark."""
    return [_FIRST + ord(c) - 32 if " " <= c <= "~" else _FIRST + 31 for c in text]


def decode(token: int) -> str:
    """The character of a token; special tokens have none."""
    return chr(token - _FIRST + 32) if _FIRST <= token < VOCABULARY else ""


@dataclass(slots=True)
class Script:
    """One output. tokens: what is sent, with the text of each in `texts`. produced: tokens the
    engine counts, a withheld one included.
    """

    tokens: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    reason: int = v1.FINISH_REASON_LENGTH
    match: v1.StopMatch | None = None
    produced: int = 0


def write(
    request: v1.GenerateRequest, prompt: list[int], index: int, most: int, behaviour: Behaviour
) -> Script:
    """The output `index` of a request, at most `most` tokens long."""
    stopping = request.stopping
    seed = f"{prompt}{index}{request.sampling.seed if request.sampling.temperature else 0}"
    start = zlib.crc32(seed.encode())
    ends_at = max(SHORTEST + start % SPREAD, stopping.min_tokens)
    stops = () if behaviour.stops_ignored else tuple(stopping.conditions)
    script = Script()
    while script.produced < most:
        at = script.produced
        script.produced += 1
        if at >= ends_at and not stopping.ignore_eos and not behaviour.stops_ignored:
            script.reason = v1.FINISH_REASON_STOP
            script.match = None if behaviour.eos_unnamed else v1.StopMatch(eos_token_id=EOS)
            return script
        character = TALE[(start + at) % len(TALE)]
        script.tokens.append(encode(character)[0] if character != "\n" else encode(".")[0])
        script.texts.append(decode(script.tokens[-1]))
        if at >= stopping.min_tokens and _stopped(script, stops):
            if not stopping.include_stop_in_output:
                _withhold(script)
            return script
    return script


def _stopped(script: Script, stops: tuple[v1.StopCondition, ...]) -> bool:
    """Whether the last token meets a condition; the script then says which."""
    text = "".join(script.texts)
    for stop in stops:
        if stop.WhichOneof("condition") == "stop_text" and text.endswith(stop.stop_text):
            script.match = v1.StopMatch(stop_text=stop.stop_text)
        elif stop.WhichOneof("condition") == "stop_token_id":
            if script.tokens[-1] != stop.stop_token_id:
                continue
            script.match = v1.StopMatch(stop_token_id=stop.stop_token_id)
        else:
            continue
        script.reason = v1.FINISH_REASON_STOP
        return True
    return False


def _withhold(script: Script) -> None:
    """Take the matched token away, and the matched text from the tokens before it."""
    over = len(script.match.stop_text) - 1 if script.match is not None else 0
    script.tokens.pop()
    script.texts.pop()
    for at in range(len(script.texts) - max(0, over), len(script.texts)):
        script.texts[at] = ""


def order(token: int, at: int) -> list[int]:
    """Every token of the vocabulary, likeliest first: the one that was taken, then the others."""
    others = [(at + step) % VOCABULARY for step in range(VOCABULARY)]
    return [token, *(other for other in others if other != token)]


def logprob(rank: int) -> float:
    """Natural logarithm of the probability of the token with this rank, from 1."""
    return rank * math.log(0.5)
