"""What a caller asks for, already validated: plain frozen data that the engine never changes."""

from dataclasses import dataclass, field
from enum import Enum

from reference_engine.guided.guide import Grammar


class CandidateMode(Enum):
    """Which alternatives of a token position are reported."""

    NONE = "none"
    TOP_N = "top_n"
    TOKEN_IDS = "token_ids"  # noqa: S105  # no password
    ALL = "all"


@dataclass(frozen=True, slots=True)
class CandidateSelection:
    """Alternatives to report. `top_n` counts for TOP_N, `token_ids` (unique) for TOKEN_IDS."""

    mode: CandidateMode = CandidateMode.NONE
    top_n: int = 0
    token_ids: tuple[int, ...] = ()


NO_CANDIDATES = CandidateSelection()


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is drawn. temperature 0 is greedy; top_k 0 and min_p 0 switch off."""

    seed: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is taken without a draw."""
        return self.temperature == 0.0

    @property
    def penalised(self) -> bool:
        """Whether the tokens so far change the logits."""
        return (
            self.frequency_penalty != 0.0
            or self.presence_penalty != 0.0
            or self.repetition_penalty != 1.0
        )


@dataclass(frozen=True, slots=True)
class Stopping:
    """When an output ends. max_tokens is the caller's limit; None means up to the window."""

    max_tokens: int | None = None
    min_tokens: int = 0
    stop_token_ids: frozenset[int] = frozenset()
    stop_texts: tuple[str, ...] = ()
    ignore_eos: bool = False
    include_stop: bool = False


@dataclass(frozen=True, slots=True)
class Scoring:
    """Which log probabilities are wanted. prompt_start is None when prompt scores are not."""

    output: bool = False
    output_candidates: CandidateSelection = NO_CANDIDATES
    prompt_start: int | None = None
    prompt_candidates: CandidateSelection = NO_CANDIDATES


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How a request may use the prefix cache.

    bypass: neither reads nor leaves blocks. salt: blocks are shared with equal salts only, None
    is the common cache. keys: what besides the tokens decides keys and values, such as the
    loaded adapter; requests share blocks only where all of them are equal.
    """

    bypass: bool = False
    salt: str | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One generation request: a prompt of at least one token and 1 or more outputs.

    priority: higher is scheduled first, equal ones in order of arrival. grammar: the language of
    the outputs, compiled before. adapter: key of an adapter in the engine's memory, which has to
    be one of the keys of `cache` too.
    """

    prompt: tuple[int, ...]
    sampling: Sampling
    stopping: Stopping = field(default_factory=Stopping)
    scoring: Scoring = field(default_factory=Scoring)
    num_sequences: int = 1
    priority: int = 0
    cache: CacheUse = field(default_factory=CacheUse)
    grammar: Grammar | None = None
    adapter: str | None = None
