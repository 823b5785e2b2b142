"""Between wire messages and the engine's data; the messages are valid already."""

import secrets
from collections.abc import Iterable

from oe_wire import v1
from reference_engine.engine.output import (
    Event,
    FinishReason,
    OutputFinished,
    PromptScored,
    RequestFailed,
    Score,
    StopMatch,
    Token,
    TokensProduced,
    Usage,
)
from reference_engine.engine.request import (
    NO_CANDIDATES,
    CacheUse,
    CandidateMode,
    CandidateSelection,
    Request,
    Sampling,
    Scoring,
    Stopping,
)
from reference_engine.guided.guide import Grammar
from reference_engine.lora.adapter import Adapter
from reference_engine.model.tokenizer import Tokenizer

_REASONS = {
    FinishReason.STOP: v1.FINISH_REASON_STOP,
    FinishReason.LENGTH: v1.FINISH_REASON_LENGTH,
    FinishReason.CANCELLED: v1.FINISH_REASON_CANCELLED,
}


def to_request(
    message: v1.GenerateRequest,
    prompt: Iterable[int],
    priority: int = 0,
    grammar: Grammar | None = None,
    adapter: Adapter | None = None,
) -> Request:
    """The engine's request. Absent options take their defaults, an absent seed is random."""
    sampling = message.sampling
    return Request(
        prompt=tuple(prompt),
        sampling=_sampling(sampling),
        stopping=_stopping(message.stopping),
        scoring=_scoring(message.response),
        num_sequences=sampling.num_sequences if sampling.HasField("num_sequences") else 1,
        priority=priority,
        cache=_cache(message.kv, adapter),
        grammar=grammar,
        adapter=adapter.key if adapter else None,
    )


def _cache(kv: v1.KvOptions, adapter: Adapter | None) -> CacheUse:
    return CacheUse(
        bypass=kv.bypass_prefix_cache,
        salt=kv.cache_salt if kv.HasField("cache_salt") else None,
        keys=(adapter.key,) if adapter else (),
    )


def _sampling(sampling: v1.SamplingParams) -> Sampling:
    def given(name: str, default: float) -> float:
        value: float = getattr(sampling, name)
        return value if sampling.HasField(name) else default  # type: ignore[arg-type]

    return Sampling(
        seed=sampling.seed if sampling.HasField("seed") else secrets.randbits(64),
        temperature=given("temperature", 1.0),
        top_p=given("top_p", 1.0),
        top_k=max(0, sampling.top_k),
        min_p=sampling.min_p,
        frequency_penalty=sampling.frequency_penalty,
        presence_penalty=sampling.presence_penalty,
        repetition_penalty=given("repetition_penalty", 1.0),
    )


def _stopping(stopping: v1.StoppingOptions) -> Stopping:
    texts = [one.stop_text for one in stopping.conditions if one.HasField("stop_text")]
    return Stopping(
        max_tokens=stopping.max_tokens if stopping.HasField("max_tokens") else None,
        min_tokens=stopping.min_tokens,
        stop_token_ids=frozenset(
            one.stop_token_id for one in stopping.conditions if one.HasField("stop_token_id")
        ),
        stop_texts=tuple(dict.fromkeys(texts)),
        ignore_eos=stopping.ignore_eos,
        include_stop=stopping.include_stop_in_output,
    )


def _scoring(response: v1.ResponseOptions) -> Scoring:
    return Scoring(
        output=response.return_output_logprobs,
        output_candidates=_selection(response.output_candidates),
        prompt_start=response.prompt_logprob_start if response.return_prompt_logprobs else None,
        prompt_candidates=_selection(response.prompt_candidates),
    )


def _selection(selection: v1.CandidateTokenSelection) -> CandidateSelection:
    kind = selection.WhichOneof("selection")
    if kind is None:
        return NO_CANDIDATES
    return CandidateSelection(
        mode=CandidateMode(kind),
        top_n=selection.top_n,
        token_ids=tuple(dict.fromkeys(selection.token_ids.ids)),
    )


def to_response(request_id: str, event: Event, tokenizer: Tokenizer) -> v1.GenerateResponse:
    """The message of one event, with usage where the event carries it."""
    message = v1.GenerateResponse(request_id=request_id)
    if isinstance(event, PromptScored):
        message.prompt.SetInParent()
        message.prompt.tokens.extend(_token(token, tokenizer) for token in event.tokens)
        return message
    if isinstance(event, TokensProduced):
        message.token.output_index = event.output_index
        message.token.text = event.text
        message.token.tokens.extend(_token(token, tokenizer) for token in event.tokens)
        return message
    if isinstance(event, OutputFinished):
        message.finished.output_index = event.output_index
        message.finished.reason = _REASONS[event.reason]
        if event.stop is not None:
            message.finished.stop_match.CopyFrom(_stop_match(event.stop))
    else:
        message.error.code = _error_code(event)
        message.error.message = event.message
        message.error.retryable = event.overloaded
    if event.usage is not None:
        message.usage.CopyFrom(to_usage(event.usage))
    return message


def _error_code(event: RequestFailed) -> int:
    if event.overloaded:
        return v1.ERROR_CODE_OVERLOADED
    return v1.ERROR_CODE_INVALID_ARGUMENT if event.invalid else v1.ERROR_CODE_INTERNAL


def to_usage(usage: Usage) -> v1.Usage:
    """Token counts as the wire has them."""
    return v1.Usage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        cached_prompt_tokens=usage.cached_prompt_tokens,
    )


def _stop_match(stop: StopMatch) -> v1.StopMatch:
    if stop.text is not None:
        return v1.StopMatch(stop_text=stop.text)
    if stop.eos_token_id is not None:
        return v1.StopMatch(eos_token_id=stop.eos_token_id)
    return v1.StopMatch(stop_token_id=stop.token_id)


def _token(token: Token, tokenizer: Tokenizer) -> v1.TokenInfo:
    text = tokenizer.token_text(token.token_id)
    if token.score is None:
        return v1.TokenInfo(token_id=token.token_id, token=text)
    return v1.TokenInfo(
        token_id=token.token_id,
        token=text,
        logprob=token.score.logprob,
        rank=token.score.rank,
        candidates=_candidates(token.score, tokenizer),
    )


def _candidates(score: Score, tokenizer: Tokenizer) -> list[v1.LogProb]:
    if score.candidates is None:
        return []
    columns = score.candidates
    return [
        v1.LogProb(
            token_id=token_id, logprob=logprob, rank=rank, token=tokenizer.token_text(token_id)
        )
        for token_id, logprob, rank in zip(
            columns.token_ids, columns.logprobs, columns.ranks, strict=True
        )
    ]
