"""Builds transcripts of Generate calls by hand, one short call per event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import grpc
from google.protobuf.message import Message

from conformance.laws import LAWS, Finding, Ruling
from conformance.laws.law import GENERATE
from conformance.wire.declared import Declared, TargetClass
from conformance.wire.transcript import (
    Action,
    ActionKind,
    Ending,
    Event,
    Metadata,
    Origin,
    Transcript,
)
from oe_wire import v1

STOP = v1.FINISH_REASON_STOP
LENGTH = v1.FINISH_REASON_LENGTH
CANCELLED = v1.FINISH_REASON_CANCELLED
DECLARED = Declared(target_class=TargetClass.PROFILE_AWARE, dialect="v0.1.0")


def aggregated() -> Declared:
    """An engine that runs both phases."""
    info = v1.EngineInfo(engine_role=v1.ENGINE_ROLE_AGGREGATED)
    return Declared(target_class=TargetClass.PROFILE_AWARE, dialect="v0.1.0", engine_info=info)


def request(
    ids: Sequence[int] = (5, 6, 7),
    *,
    prompt: str | None = None,
    n: int | None = None,
    stop: Sequence[int | str] = (),
    response: v1.ResponseOptions | None = None,
    **stopping: int,
) -> v1.GenerateRequest:
    """A request of token ids (or `prompt`); `stop` mixes stop tokens and stop texts."""
    conditions = [
        v1.StopCondition(stop_text=s) if isinstance(s, str) else v1.StopCondition(stop_token_id=s)
        for s in stop
    ]
    built = v1.GenerateRequest(request_id="r1", model="m", response=response)
    if prompt is None:
        built.token_ids.ids.extend(ids)
    else:
        built.prompt = prompt
    if n is not None:
        built.sampling.num_sequences = n
    built.stopping.conditions.extend(conditions)
    for name, value in stopping.items():
        setattr(built.stopping, name, value)
    return built


def info(
    token_id: int,
    logprob: float | None = None,
    rank: int | None = None,
    candidates: Sequence[tuple[int, int | None]] = (),
) -> v1.TokenInfo:
    """A token record; candidates as (token id, rank)."""
    built = [v1.LogProb(token_id=each, logprob=-1.0, rank=place) for each, place in candidates]
    return v1.TokenInfo(token_id=token_id, logprob=logprob, rank=rank, candidates=built)


def tokens(
    index: int | None, records: Iterable[int | v1.TokenInfo] = (), text: str = ""
) -> v1.GenerateResponse:
    """A TokenOutput; plain ids become bare records."""
    infos = [info(each) if isinstance(each, int) else each for each in records]
    return v1.GenerateResponse(token=v1.TokenOutput(output_index=index, tokens=infos, text=text))


def finished(
    index: int | None,
    reason: int = LENGTH,
    *,
    token: int | None = None,
    text: str | None = None,
    eos: int | None = None,
    message: str = "",
) -> v1.GenerateResponse:
    """A GenerationFinished, with a stop_match when one of its variants is given."""
    matched = any(each is not None for each in (token, text, eos))
    match = v1.StopMatch(stop_token_id=token, stop_text=text, eos_token_id=eos)
    return v1.GenerateResponse(
        finished=v1.GenerationFinished(
            output_index=index,
            reason=reason,
            message=message,
            stop_match=match if matched else None,
        )
    )


def prompt(*records: int | v1.TokenInfo) -> v1.GenerateResponse:
    """A PromptOutput."""
    infos = [info(each) if isinstance(each, int) else each for each in records]
    return v1.GenerateResponse(prompt=v1.PromptOutput(tokens=infos))


def failed(
    code: int = v1.ERROR_CODE_INTERNAL, message: str = "broke", retryable: bool = False
) -> v1.GenerateResponse:
    """An EngineError."""
    return v1.GenerateResponse(
        error=v1.EngineError(code=code, message=message, retryable=retryable)
    )


def handover() -> v1.GenerateResponse:
    """A PrefillReady."""
    session = v1.KvSessionRef(session_id="s")
    return v1.GenerateResponse(prefill_ready=v1.PrefillReady(kv_session=session))


def usage(
    prompt_tokens: int, completion_tokens: int, total: int | None = None, **parts: int
) -> v1.Usage:
    """A Usage, its total correct unless given."""
    return v1.Usage(
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        total_tokens=prompt_tokens + completion_tokens if total is None else total,
        **parts,
    )


def with_usage(response: v1.GenerateResponse, counted: v1.Usage) -> v1.GenerateResponse:
    """`response` with `counted` on it."""
    response.usage.CopyFrom(counted)
    return response


def ending(
    code: grpc.StatusCode = grpc.StatusCode.OK,
    details: str = "",
    *,
    local: bool = False,
    trailers: Metadata = (),
    seconds: float = 9.0,
) -> Ending:
    """How the call ended; from the engine unless `local`."""
    return Ending(seconds, code, details, Origin.LOCAL if local else Origin.REMOTE, trailers)


def stream(
    sent: Message | None,
    *answers: v1.GenerateResponse,
    usage: v1.Usage | None = None,
    end: Ending | None = None,
    actions: Sequence[ActionKind] = (),
    metadata: Metadata = (),
    method: str = GENERATE,
) -> Transcript:
    """A call of `sent`: each answer gets the request's id if it has none, the last one `usage`."""
    for answer in answers:
        if isinstance(sent, v1.GenerateRequest) and not answer.request_id:
            answer.request_id = sent.request_id
    if usage is not None:
        answers[-1].usage.CopyFrom(usage)
    return Transcript(
        method=method,
        request=sent,
        request_bytes=b"" if sent is None else sent.SerializeToString(),
        metadata=metadata,
        events=tuple(Event(0.1 * at, answer) for at, answer in enumerate(answers)),
        ending=end or ending(),
        actions=tuple(Action(0.05, kind) for kind in actions),
    )


def rejected(
    status: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT,
    details: str = "no",
    *,
    sent: Message | None = None,
    method: str = GENERATE,
    metadata: Metadata = (),
    local: bool = False,
    **trailers: str,
) -> Transcript:
    """A call that got a status and no message; trailers are named by their last word."""
    pairs = tuple((f"openengine-error-{name}", value) for name, value in trailers.items())
    end = ending(status, details, trailers=pairs, local=local)
    asked = request() if sent is None else sent
    return stream(asked, end=end, method=method, metadata=metadata)


def rule(short: str, transcript: Transcript, declared: Declared = DECLARED) -> Ruling:
    """The ruling of one law: `STREAM-001` means OE-CORE-STREAM-001."""
    return LAWS[f"OE-CORE-{short}"].judge(transcript, declared)


def found(short: str, transcript: Transcript, declared: Declared = DECLARED) -> int | None:
    """The event at which a law finds a breach; fails when it finds none."""
    ruling = rule(short, transcript, declared)
    if not isinstance(ruling, Finding):
        raise TypeError(f"{short} found nothing: {ruling!r}")
    lines = (ruling.expected + ruling.actual).count("\n")
    if lines:
        raise ValueError(f"{short} wrote more than one line: {ruling!r}")
    return ruling.event
