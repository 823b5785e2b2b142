"""Hypothesis strategies for valid GenerateRequests of one engine."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache

from hypothesis import strategies as st

from conformance.model.case import Case
from conformance.oracle import expect
from conformance.oracle.limits import SAFE_STOP_CONDITIONS, Limits, limits_of
from conformance.strategies.extras import draw_extras, draw_guide
from conformance.strategies.simple import fitting_tokens, simple_request, takes_tokens
from conformance.wire.declared import Declared
from oe_wire import v1

# Generation is what a run costs: at most 4 sequences of 8 tokens per request.
MAX_SEQUENCES = 4
MAX_TOKENS = 8
# Letters with one to four UTF-8 bytes; the first is what prompts shrink to.
ALPHABET = "abcdehilnorst ABT019.,?!-éñßЖд語日本한🙂"
# Texts that models write all the time, so that a stop condition is met within a few tokens.
FREQUENT_TEXTS = ("e", " ", "a", "t", "o", "n", ".", "\n", "th")

# Strategies are made once: Hypothesis validates each object anew, which costs more than drawing.
# A list, because texts shrink to zeros whatever comes first in the alphabet.
_LETTERS = st.lists(st.sampled_from(ALPHABET), min_size=1, max_size=10)
_PERHAPS = st.none() | st.booleans()
_SAMPLING: Mapping[str, st.SearchStrategy[float | None]] = {
    "temperature": st.none() | st.sampled_from((0.0, 0.7, 1.0, 1.5)),
    "top_p": st.none() | st.sampled_from((1.0, 0.9, 0.5)),
    "top_k": st.none() | st.sampled_from((0, -1, 1, 5, 40)),
    "min_p": st.none() | st.sampled_from((0.0, 0.05, 0.5)),
    "frequency_penalty": st.none() | st.sampled_from((0.0, 0.5, -0.5)),
    "presence_penalty": st.none() | st.sampled_from((0.0, 0.5, -0.5)),
    "repetition_penalty": st.none() | st.sampled_from((1.0, 1.1)),
    "seed": st.none() | st.integers(0, 1000),
}
_STOP_TEXTS = st.sampled_from(FREQUENT_TEXTS).map(lambda text: v1.StopCondition(stop_text=text))


class Feature(StrEnum):
    """What a law needs a request to have; one that the engine does not declare is left out."""

    TOKENS = "tokens"  # token ids as input
    SEVERAL = "several"  # more than one sequence
    LONG = "long"  # the most tokens that a drawn request asks for
    STOP_TEXT = "stop_text"
    STOP_TOKEN = "stop_token"  # noqa: S105 - a kind of stop condition
    STOP_IN_OUTPUT = "stop_in_output"
    MIN_TOKENS = "min_tokens"
    IGNORE_EOS = "ignore_eos"
    PROMPT_LOGPROBS = "prompt_logprobs"
    OUTPUT_LOGPROBS = "output_logprobs"
    OUTPUT_CANDIDATES = "output_candidates"
    PROMPT_CANDIDATES = "prompt_candidates"


Features = frozenset[Feature]


def cases(declared: Declared, *features: Feature) -> st.SearchStrategy[Case]:
    """Valid requests that have all `features` the engine declares, as cases."""
    return requests(declared, *features).map(Case)


def requests(declared: Declared, *features: Feature) -> st.SearchStrategy[v1.GenerateRequest]:
    """Requests that the oracle says are accepted, cheap to serve, each feature forced."""
    # The filter only removes combinations that the engine excludes; all else is built valid.
    return _requests(declared, frozenset(features)).filter(
        lambda request: expect(request, (), declared).accepted
    )


@st.composite
def _requests(draw: st.DrawFn, declared: Declared, features: Features) -> v1.GenerateRequest:
    limits = limits_of(declared)
    request = simple_request(declared)
    _draw_input(draw, request, declared, features)
    _draw_sampling(draw, request.sampling, limits, features)
    _draw_stopping(draw, request.stopping, declared, features)
    _draw_response(draw, request.response, declared, features)
    draw_extras(draw, request, declared, limits)
    if Feature.LONG not in features:
        draw_guide(draw, request, declared)
    settle_choice(request)
    for part in ("sampling", "response"):
        if not getattr(request, part).ByteSize():
            request.ClearField(part)
    return request


def settle_choice(request: v1.GenerateRequest) -> None:
    """Make the output repeatable where the engine allows it, so that a failure that depends on
    the tokens comes back when its request is replayed: greedy, or with a seed.
    """
    sampling = request.sampling
    if sampling.HasField("seed") or request.stopping.max_tokens <= 1:
        return
    if not sampling.HasField("temperature"):
        # Several greedy outputs are all the same, and some engines refuse to make them.
        sampling.temperature = 1.0 if sampling.num_sequences > 1 else 0.0
    if sampling.temperature > 0:
        sampling.seed = 0


def _draw_input(
    draw: st.DrawFn, request: v1.GenerateRequest, declared: Declared, features: Features
) -> None:
    limits = limits_of(declared)
    able = bool(limits.token_input)
    ids = able and (Feature.TOKENS in features or takes_tokens(declared) or draw(st.booleans()))
    if ids:
        request.token_ids.ids[:] = draw(_ids(limits.tokens))
    elif limits.text_input:
        request.prompt = "".join(draw(_LETTERS))


def _draw_sampling(
    draw: st.DrawFn, sampling: v1.SamplingParams, limits: Limits, features: Features
) -> None:
    most = min(MAX_SEQUENCES, limits.max_sequences or 1)
    if Feature.SEVERAL in features and most > 1:
        sampling.num_sequences = draw(st.integers(2, most))
    elif draw(st.booleans()):
        sampling.num_sequences = draw(st.integers(1, most))
    for name, values in _SAMPLING.items():
        value = draw(values)
        if value is not None:
            setattr(sampling, name, value)


def _draw_stopping(
    draw: st.DrawFn, stopping: v1.StoppingOptions, declared: Declared, features: Features
) -> None:
    limits = limits_of(declared)
    most = fitting_tokens(declared, MAX_TOKENS)
    least = most if Feature.LONG in features else 1
    if features & {Feature.MIN_TOKENS, Feature.STOP_TEXT, Feature.STOP_TOKEN}:
        least = most
    stopping.max_tokens = draw(st.integers(least, most))
    if Feature.MIN_TOKENS in features:
        stopping.min_tokens = draw(st.integers(min(2, most), min(8, most)))
    elif draw(st.booleans()):
        stopping.min_tokens = draw(st.integers(0, stopping.max_tokens))
    stopping.conditions.extend(_draw_conditions(draw, limits, features))
    if Feature.IGNORE_EOS in features:
        stopping.ignore_eos = True
    elif (ignore := draw(_PERHAPS)) is not None:
        stopping.ignore_eos = ignore
    if limits.stop_in_output and Feature.STOP_IN_OUTPUT in features:
        stopping.include_stop_in_output = True
    elif (include := draw(_PERHAPS)) is not None:
        stopping.include_stop_in_output = include and bool(limits.stop_in_output)


def _draw_conditions(draw: st.DrawFn, limits: Limits, features: Features) -> list[v1.StopCondition]:
    room = min(SAFE_STOP_CONDITIONS, limits.max_stop_conditions or SAFE_STOP_CONDITIONS)
    kinds = (Feature.STOP_TEXT, Feature.STOP_TOKEN)
    kind = next((kind for kind in kinds if kind in features), None)
    return draw(_conditions(limits.tokens, kind, room))


@cache
def _ids(tokens: tuple[int, ...]) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from(tokens), min_size=1, max_size=8)


@cache
def _conditions(
    tokens: tuple[int, ...], kind: Feature | None, room: int
) -> st.SearchStrategy[list[v1.StopCondition]]:
    ids = st.sampled_from(tokens).map(lambda token: v1.StopCondition(stop_token_id=token))
    if kind is Feature.STOP_TEXT:
        return st.lists(_STOP_TEXTS, min_size=min(3, room), max_size=room)
    if kind is Feature.STOP_TOKEN:
        return st.lists(ids, min_size=room, max_size=room)
    return st.lists(_STOP_TEXTS | ids, max_size=min(2, room))


def _draw_response(
    draw: st.DrawFn, response: v1.ResponseOptions, declared: Declared, features: Features
) -> None:
    model = declared.model if declared.model is not None else v1.ModelInfo()
    for which, logprobs, candidates in (
        ("prompt", Feature.PROMPT_LOGPROBS, Feature.PROMPT_CANDIDATES),
        ("output", Feature.OUTPUT_LOGPROBS, Feature.OUTPUT_CANDIDATES),
    ):
        offer: v1.LogprobCapabilities = getattr(model.generation, f"{which}_logprobs")
        forced = bool(features & {logprobs, candidates})
        wanted = True if forced else draw(_PERHAPS)
        if wanted is None:
            continue
        setattr(response, f"return_{which}_logprobs", wanted and offer.supported)
        if not (wanted and offer.supported):
            continue
        selections = _selections(offer, limits_of(declared))
        if selections and (candidates in features or draw(st.booleans())):
            chosen = draw(st.sampled_from(selections))
            getattr(response, f"{which}_candidates").CopyFrom(chosen)


def _selections(offer: v1.LogprobCapabilities, limits: Limits) -> list[v1.CandidateTokenSelection]:
    """One selection or two for each advertised mode; ALL last, its answers are large."""
    modes = offer.candidate_selection_modes
    selections = []
    if v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N in modes and offer.max_top_n:
        selections += [
            v1.CandidateTokenSelection(top_n=count)
            for count in sorted({1, min(3, offer.max_top_n)})
        ]
    if v1.CANDIDATE_TOKEN_SELECTION_MODE_TOKEN_IDS in modes:
        ids = v1.TokenIds(ids=sorted(set(limits.tokens))[:2])
        selections.append(v1.CandidateTokenSelection(token_ids=ids))
    if v1.CANDIDATE_TOKEN_SELECTION_MODE_ALL in modes:
        selections.append(v1.CandidateTokenSelection(all=v1.AllCandidates()))
    return selections


def candidate_selections(
    declared: Declared, which: str = "output"
) -> list[v1.CandidateTokenSelection]:
    """Legal candidate selections of this engine for `output` or `prompt` tokens."""
    model = declared.model if declared.model is not None else v1.ModelInfo()
    return _selections(getattr(model.generation, f"{which}_logprobs"), limits_of(declared))
