"""Reasons to refuse stopping and response options: GEN-013 to 015, 021, 022, 025, 026, 030."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.oracle.expectation import Reason, broken, either, unknown
from conformance.oracle.limits import (
    NO_TOKEN,
    SAFE_MIN_TOKENS,
    SAFE_STOP_CONDITIONS,
    SAFE_STOP_TEXT_BYTES,
    SAFE_WINDOW,
    Limits,
)
from conformance.wire.declared import Declared
from oe_wire import v1

_MODES = {
    "top_n": v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N,
    "token_ids": v1.CANDIDATE_TOKEN_SELECTION_MODE_TOKEN_IDS,
    "all": v1.CANDIDATE_TOKEN_SELECTION_MODE_ALL,
}


def stopping_reasons(
    stopping: v1.StoppingOptions, declared: Declared, limits: Limits
) -> Iterator[Reason]:
    """Every rule that these options break; absent fields break none."""
    yield from _max_tokens(stopping, declared, limits)
    yield from _min_tokens(stopping, limits)
    yield from _conditions(stopping, declared, limits)
    if stopping.include_stop_in_output:
        if limits.stop_in_output is None or (not limits.stop_in_output and declared.legacy):
            yield unknown("stop in output is unreported or the engine is a legacy one")
        elif not limits.stop_in_output:
            yield broken("GEN-030")


def _max_tokens(
    stopping: v1.StoppingOptions, declared: Declared, limits: Limits
) -> Iterator[Reason]:
    if not stopping.HasField("max_tokens"):
        return
    count = stopping.max_tokens
    if count == 0:
        if declared.legacy:
            yield unknown("zero max_tokens on a legacy engine")
        elif not limits.accepts_zero_max_tokens:
            yield broken("GEN-013")
    elif limits.max_output_tokens is None:
        if count > SAFE_WINDOW:
            yield unknown("many tokens while max_output_tokens is unreported")
    elif count > limits.max_output_tokens:
        yield unknown("output limit of a legacy engine") if declared.legacy else broken("GEN-015")


def _min_tokens(stopping: v1.StoppingOptions, limits: Limits) -> Iterator[Reason]:
    least = stopping.min_tokens
    if stopping.HasField("max_tokens"):
        if least > stopping.max_tokens:
            yield broken("GEN-014")
    elif least > min(SAFE_MIN_TOKENS, limits.max_output_tokens or SAFE_MIN_TOKENS):
        yield unknown("min_tokens against the engine's own default of max_tokens")


def _conditions(
    stopping: v1.StoppingOptions, declared: Declared, limits: Limits
) -> Iterator[Reason]:
    conditions = stopping.conditions
    if limits.max_stop_conditions is not None and len(conditions) > limits.max_stop_conditions:
        yield unknown("stop limit of a legacy engine") if declared.legacy else broken("GEN-022")
    elif limits.max_stop_conditions is None and len(conditions) > SAFE_STOP_CONDITIONS:
        yield unknown("many stop conditions while max_stop_conditions is unreported")
    for condition in conditions:
        match condition.WhichOneof("condition"):
            case "stop_text":
                yield from _stop_text(condition.stop_text, limits)
            case "stop_token_id":
                if condition.stop_token_id not in limits.tokens:
                    yield unknown("stop token that may lie outside the vocabulary")
            case _:
                yield broken("GEN-021")


def _stop_text(text: str, limits: Limits) -> Iterator[Reason]:
    if not text:
        yield broken("GEN-021")
    elif len(text.encode()) > (limits.max_stop_text_bytes or SAFE_STOP_TEXT_BYTES):
        yield unknown("long stop text")


def response_reasons(
    response: v1.ResponseOptions, declared: Declared, limits: Limits
) -> Iterator[Reason]:
    """Every rule that the log probability options break."""
    model = declared.model if declared.model is not None else v1.ModelInfo()
    offers = model.generation
    if response.return_prompt_logprobs:
        yield from _logprobs(offers.prompt_logprobs, "prompt")
    if response.return_output_logprobs:
        yield from _logprobs(offers.output_logprobs, "output")
    if response.HasField("prompt_candidates"):
        yield from _candidates(response.prompt_candidates, offers.prompt_logprobs, limits)
        if not response.return_prompt_logprobs:
            yield either("GEN-026")
    if response.HasField("output_candidates"):
        yield from _candidates(response.output_candidates, offers.output_logprobs, limits)
        if not response.return_output_logprobs:
            yield either("GEN-026")
    if response.prompt_logprob_start:
        yield unknown("prompt_logprob_start against the length of the prompt")


def _logprobs(offer: v1.LogprobCapabilities, which: str) -> Iterator[Reason]:
    if not offer.supported:
        yield unknown(f"{which} log probabilities are not reported as supported")


def _candidates(
    selection: v1.CandidateTokenSelection, offer: v1.LogprobCapabilities, limits: Limits
) -> Iterator[Reason]:
    variant = selection.WhichOneof("selection")
    if variant is None or _MODES[variant] not in offer.candidate_selection_modes:
        yield broken("GEN-025")
    elif variant == "top_n":
        if offer.HasField("max_top_n") and selection.top_n > offer.max_top_n:
            yield broken("GEN-025")
        elif selection.top_n == 0 or not offer.HasField("max_top_n"):
            yield unknown("top_n of zero, or without a reported limit")
    elif variant == "token_ids":
        asked = set(selection.token_ids.ids)
        if any(token >= NO_TOKEN for token in asked):
            yield broken("GEN-025")
        elif not asked or not asked <= set(limits.tokens):
            yield unknown("candidate ids that may lie outside the vocabulary")
