"""What the engine hands to a request's reader, in order: scores, tokens, and one end per output."""

from dataclasses import dataclass
from enum import Enum


class FinishReason(Enum):
    """Why an output ended."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class StopMatch:
    """What ended an output with STOP: exactly one of the three is set."""

    token_id: int | None = None
    text: str | None = None
    eos_token_id: int | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Alternatives of one position as equal-length columns, best rank first or as asked."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Natural log probability of a token before penalties, and its rank (1 = most likely)."""

    logprob: float
    rank: int
    candidates: Candidates | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """One token record. `score` is None when it was not asked for."""

    token_id: int
    score: Score | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of a request over all its outputs."""

    prompt_tokens: int
    completion_tokens: int
    cached_prompt_tokens: int


@dataclass(frozen=True, slots=True)
class PromptScored:
    """The prompt's tokens from the asked start on; comes before every TokensProduced."""

    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class TokensProduced:
    """New tokens of one output and the text that they add."""

    output_index: int
    tokens: tuple[Token, ...]
    text: str


@dataclass(frozen=True, slots=True)
class OutputFinished:
    """The end of one output. `usage` is set on the last end of the request only."""

    output_index: int
    reason: FinishReason
    stop: StopMatch | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """The end of a request by a fault; nothing follows.

    invalid: a fault of the request itself. overloaded: its reader was too slow.
    """

    message: str
    usage: Usage | None = None
    invalid: bool = False
    overloaded: bool = False


Event = PromptScored | TokensProduced | OutputFinished | RequestFailed


def is_last(event: Event) -> bool:
    """Whether nothing follows this event in its request."""
    if isinstance(event, RequestFailed):
        return True
    return isinstance(event, OutputFinished) and event.usage is not None


def num_candidates(event: Event) -> int:
    """Alternatives that an event carries over all its tokens."""
    if not isinstance(event, PromptScored | TokensProduced):
        return 0
    scores = (token.score for token in event.tokens if token.score is not None)
    return sum(len(score.candidates.token_ids) for score in scores if score.candidates is not None)
