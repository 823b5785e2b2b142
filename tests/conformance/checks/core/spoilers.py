"""Ways to spoil a right stream, each breaking the row that it is named by."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grpc

from oe_wire import v1
from tests.conformance.fake_engine import LateRefusal, Stream

Spoil = Callable[[v1.GenerateRequest, Stream], Stream]


def _each(change: Callable[[v1.GenerateResponse], object]) -> Spoil:
    def spoil(_: v1.GenerateRequest, stream: Stream) -> Stream:
        for response in stream:
            change(response)
            yield response

    return spoil


def _tokens(change: Callable[[v1.TokenOutput], object]) -> Spoil:
    return _each(lambda r: change(r.token) if r.HasField("token") else None)


def _records(change: Callable[[v1.TokenInfo], object]) -> Spoil:
    return _tokens(lambda token: [change(info) for info in token.tokens])


def _finishes(change: Callable[[v1.GenerationFinished], object]) -> Spoil:
    return _each(lambda r: change(r.finished) if r.HasField("finished") else None)


def _usages(change: Callable[[v1.Usage], object]) -> Spoil:
    return _each(lambda r: change(r.usage) if r.HasField("usage") else None)


def _prompts(change: Callable[[v1.PromptOutput], object]) -> Spoil:
    return _each(lambda r: change(r.prompt) if r.HasField("prompt") else None)


def error(
    request: v1.GenerateRequest,
    code: int = v1.ERROR_CODE_INTERNAL,
    message: str = "fault",
    *,
    retryable: bool = False,
    usage: v1.Usage | None = None,
) -> v1.GenerateResponse:
    """An EngineError as the next response."""
    failure = v1.EngineError(code=code, message=message, retryable=retryable)
    return v1.GenerateResponse(request_id=request.request_id, error=failure, usage=usage)


def _empty_first(request: v1.GenerateRequest, stream: Stream) -> Stream:
    yield v1.GenerateResponse(request_id=request.request_id)
    yield from stream


def _cumulative(_: v1.GenerateRequest, stream: Stream) -> Stream:
    sent: dict[int, str] = {}
    for response in stream:
        if response.HasField("token"):
            index = response.token.output_index
            sent[index] = response.token.text = sent.get(index, "") + response.token.text
        yield response


def _without_finishes(_: v1.GenerateRequest, stream: Stream) -> Stream:
    return (response for response in stream if not response.HasField("finished"))


def _twice_finished(_: v1.GenerateRequest, stream: Stream) -> Stream:
    for response in stream:
        yield response
        if response.HasField("finished"):
            yield response


def _token_after_finish(request: v1.GenerateRequest, stream: Stream) -> Stream:
    for response in stream:
        yield response
        if response.HasField("finished"):
            token = v1.TokenOutput(output_index=response.finished.output_index, text="late")
            yield v1.GenerateResponse(request_id=request.request_id, token=token)


def _prompt_unasked(request: v1.GenerateRequest, stream: Stream) -> Stream:
    prompt = v1.PromptOutput(tokens=[v1.TokenInfo(token_id=10)])
    yield v1.GenerateResponse(request_id=request.request_id, prompt=prompt)
    yield from stream


def _prompt_late(_: v1.GenerateRequest, stream: Stream) -> Stream:
    held: v1.GenerateResponse | None = None
    for response in stream:
        if response.HasField("prompt"):
            held = response
            continue
        yield response
        if held is not None and response.HasField("token"):
            yield held
            held = None


def _goes_on_after_error(request: v1.GenerateRequest, stream: Stream) -> Stream:
    yield error(request)
    yield from stream


def _more_after_end(request: v1.GenerateRequest, stream: Stream) -> Stream:
    yield from stream
    yield v1.GenerateResponse(request_id=request.request_id, prompt=v1.PromptOutput())


def _match_without_stop(finished: v1.GenerationFinished) -> None:
    if finished.reason == v1.FINISH_REASON_LENGTH:
        finished.stop_match.eos_token_id = 2


def _foreign_match(finished: v1.GenerationFinished) -> None:
    if finished.reason == v1.FINISH_REASON_STOP:
        finished.stop_match.stop_text = "never asked for"


def _stop_shown(request: v1.GenerateRequest, stream: Stream) -> Stream:
    for response in stream:
        match = response.finished.stop_match
        if match.HasField("stop_text") and not request.stopping.include_stop_in_output:
            shown = v1.TokenOutput(output_index=0, text=match.stop_text)
            yield v1.GenerateResponse(request_id=request.request_id, token=shown)
        yield response


def _ends_on_eos(finished: v1.GenerationFinished) -> None:
    finished.reason = v1.FINISH_REASON_STOP
    finished.stop_match.CopyFrom(v1.StopMatch(eos_token_id=2))


def _stops_early(request: v1.GenerateRequest, stream: Stream) -> Stream:
    yield next(stream)
    finished = v1.GenerationFinished(output_index=0, reason=v1.FINISH_REASON_STOP)
    finished.stop_match.stop_text = request.stopping.conditions[0].stop_text
    usage = v1.Usage(prompt_tokens=1, completion_tokens=1, total_tokens=2)
    yield v1.GenerateResponse(request_id=request.request_id, finished=finished, usage=usage)


def _one_more_record(request: v1.GenerateRequest, stream: Stream) -> Stream:
    token = v1.TokenOutput(output_index=0, tokens=[v1.TokenInfo(token_id=10)], text="x")
    yield v1.GenerateResponse(request_id=request.request_id, token=token)
    yield from stream


def _empty_token(request: v1.GenerateRequest, stream: Stream) -> Stream:
    token = v1.TokenOutput(output_index=0)
    yield v1.GenerateResponse(request_id=request.request_id, token=token)
    yield from stream


def _usage_everywhere(response: v1.GenerateResponse) -> None:
    response.usage.SetInParent()


def _error_after_token(
    request: v1.GenerateRequest, stream: Stream
) -> Iterator[v1.GenerateResponse]:
    for response in stream:
        yield response
        if response.HasField("token"):
            break
    yield error(request)


def _error_and_status(request: v1.GenerateRequest, _: Stream) -> Stream:
    yield error(request)
    raise LateRefusal(grpc.StatusCode.INTERNAL)


def _silent_error(request: v1.GenerateRequest, _: Stream) -> Stream:
    yield error(request, message="")


def _vain_retry(request: v1.GenerateRequest, _: Stream) -> Stream:
    yield error(request, v1.ERROR_CODE_INVALID_ARGUMENT, retryable=True)


SPOILERS: dict[str, Spoil] = {
    "STREAM-001": _each(lambda r: setattr(r, "request_id", "another")),
    "STREAM-002": _empty_first,
    "STREAM-003": _tokens(lambda token: token.ClearField("output_index")),
    "STREAM-004": _cumulative,
    "STREAM-005": _twice_finished,
    "STREAM-006": _token_after_finish,
    "STREAM-007": _prompt_unasked,
    "STREAM-008": _prompt_late,
    "STREAM-009": _prompts(lambda prompt: setattr(prompt.tokens[0], "logprob", -1.0)),
    "STREAM-010": _prompts(lambda prompt: prompt.tokens.pop()),
    "STREAM-011": _goes_on_after_error,
    "STREAM-012": _more_after_end,
    "STREAM-013": _without_finishes,
    "STREAM-014": _finishes(_match_without_stop),
    "STREAM-015": _finishes(_foreign_match),
    "STREAM-016": _stop_shown,
    "STREAM-017": _finishes(_ends_on_eos),
    "STREAM-018": _stops_early,
    "STREAM-019": _one_more_record,
    "STREAM-020": _records(lambda info: info.ClearField("logprob")),
    "STREAM-021": _records(lambda info: setattr(info, "logprob", -1.0)),
    "STREAM-022": _records(lambda info: info.candidates.extend([v1.LogProb(token_id=9)] * 40)),
    "STREAM-023": _records(lambda info: setattr(info, "rank", 0)),
    "STREAM-024": _empty_token,
    "USE-001": _each(_usage_everywhere),
    "USE-002": _usages(lambda usage: setattr(usage, "completion_tokens", 190)),
    "USE-003": _usages(lambda usage: setattr(usage, "total_tokens", 0)),
    "USE-004": _usages(lambda usage: setattr(usage, "prompt_tokens", usage.prompt_tokens + 1)),
    "USE-005": _usages(lambda usage: setattr(usage, "cached_prompt_tokens", 10_000)),
    "USE-008": _error_after_token,
    "USE-009": _usages(lambda usage: setattr(usage, "completion_tokens", 0)),
    "ERR-001": _error_and_status,
    "ERR-002": _silent_error,
    "ERR-005": _vain_retry,
}
