"""The fake engine's streams: canned tokens, stop conditions, log probabilities and usage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from oe_wire import v1
from tests.conformance.fake_rules import VOCABULARY, prompt_length

KNOWN_TOKENS = tuple(range(10, 26))
EOS = 2
# Tokens after which the canned story ends unless the end is ignored.
STORY = 120
# Without "h": no stop text of two letters that checks use can lie across two tokens.
PIECES = " te end a ten on.é at e\n to 語 r"
DEFAULT_TOKENS = 16


class Stopped(Enum):
    """Whether somebody ended the request from outside."""

    NO = auto()
    ABORTED = auto()
    GONE = auto()


@dataclass(slots=True)
class _Output:
    index: int
    produced: int = 0
    text: str = ""
    sent: int = 0
    finished: v1.GenerationFinished | None = None
    ids: list[int] = field(default_factory=list)


def piece(token: int) -> str:
    """The text of a token: one or two characters."""
    return PIECES[token % len(PIECES)] + ("" if token % 3 else PIECES[(token + 7) % len(PIECES)])


def generate(
    request: v1.GenerateRequest, room: int, stopped: Callable[[], Stopped]
) -> Iterator[v1.GenerateResponse]:
    """The right stream for a valid request with `room` tokens left in the window."""
    outputs = [_Output(index) for index in range(max(1, request.sampling.num_sequences))]
    limit = request.stopping.max_tokens if request.stopping.HasField("max_tokens") else None
    most = min(DEFAULT_TOKENS if limit is None else limit, room)
    wanted = request.response
    if wanted.return_prompt_logprobs:
        yield _response(request, prompt=_prompt(request))
    while open_outputs := [output for output in outputs if output.finished is None]:
        state = stopped()
        if state is Stopped.GONE:
            return
        for output in open_outputs:
            if state is Stopped.ABORTED:
                output.finished = v1.GenerationFinished(reason=v1.FINISH_REASON_CANCELLED)
            else:
                token = _step(request, output, most)
                if token is not None:
                    yield _response(request, token=token)
            if output.finished is not None:
                output.finished.output_index = output.index
                last = all(each.finished is not None for each in outputs)
                yield _response(
                    request,
                    finished=output.finished,
                    usage=_usage(request, outputs) if last else None,
                )


def _step(request: v1.GenerateRequest, output: _Output, most: int) -> v1.TokenOutput | None:
    """Produce one token: what is to be sent of it; sets `finished` when it was the last."""
    stopping = request.stopping
    if output.produced >= most:
        output.finished = v1.GenerationFinished(reason=v1.FINISH_REASON_LENGTH)
        return None
    at = output.produced
    output.produced += 1
    enough = output.produced >= stopping.min_tokens and output.produced > 0
    ends = at >= STORY and not stopping.ignore_eos and output.produced > stopping.min_tokens
    token = EOS if ends else KNOWN_TOKENS[(at * 5 + output.index * 3) % len(KNOWN_TOKENS)]
    if ends:
        output.finished = _stop(eos_token_id=EOS)
        return None
    text = piece(token)
    hidden = False
    if enough:
        text, hidden = _match(stopping, output, token, text)
    if output.finished is None and output.produced >= most:
        output.finished = v1.GenerationFinished(reason=v1.FINISH_REASON_LENGTH)
    if hidden:
        return None
    output.ids.append(token)
    output.text += text
    return v1.TokenOutput(output_index=output.index, tokens=[_info(request, token, at)], text=text)


def _match(
    stopping: v1.StoppingOptions, output: _Output, token: int, text: str
) -> tuple[str, bool]:
    """Test the stop conditions on the newest token: the text left of it, and whether the token
    is withheld as a whole. Stop texts are one or two characters and matched within a token.
    """
    for condition in stopping.conditions:
        include = stopping.include_stop_in_output
        if condition.HasField("stop_token_id") and condition.stop_token_id == token:
            output.finished = _stop(stop_token_id=token)
            return text, not include
        found = text.find(condition.stop_text) if condition.stop_text else -1
        if found >= 0:
            output.finished = _stop(stop_text=condition.stop_text)
            end = found + (len(condition.stop_text) if include else 0)
            return text[:end], not include and found == 0
    return text, False


def _stop(
    *,
    stop_token_id: int | None = None,
    stop_text: str | None = None,
    eos_token_id: int | None = None,
) -> v1.GenerationFinished:
    match = v1.StopMatch(
        stop_token_id=stop_token_id, stop_text=stop_text, eos_token_id=eos_token_id
    )
    return v1.GenerationFinished(reason=v1.FINISH_REASON_STOP, stop_match=match)


def logprob(token: int, rank: int) -> float:
    """Halves per rank."""
    return -math.log(2) * rank


def ranked(at: int) -> list[int]:
    """The vocabulary by falling probability at a position."""
    return [(token + at) % VOCABULARY for token in range(VOCABULARY)]


def _info(request: v1.GenerateRequest, token: int, at: int) -> v1.TokenInfo:
    info = v1.TokenInfo(token_id=token, token=piece(token))
    if request.response.return_output_logprobs:
        _rate(info, request.response.output_candidates, at)
    return info


def _rate(info: v1.TokenInfo, selection: v1.CandidateTokenSelection, at: int) -> None:
    order = ranked(at)
    info.rank = order.index(info.token_id) + 1
    info.logprob = logprob(info.token_id, info.rank)
    match selection.WhichOneof("selection"):
        case "top_n":
            chosen = order[: selection.top_n]
        case "token_ids":
            chosen = list(selection.token_ids.ids)
        case "all":
            chosen = order
        case _:
            chosen = []
    for token in chosen:
        rank = order.index(token) + 1
        info.candidates.append(
            v1.LogProb(token_id=token, token=piece(token), logprob=logprob(token, rank), rank=rank)
        )


def _prompt(request: v1.GenerateRequest) -> v1.PromptOutput:
    ids = list(request.token_ids.ids) or [ord(letter) % VOCABULARY for letter in request.prompt]
    start = request.response.prompt_logprob_start
    infos = []
    for at, token in list(enumerate(ids))[start:]:
        info = v1.TokenInfo(token_id=token, token=piece(token))
        if at:
            _rate(info, request.response.prompt_candidates, at)
        infos.append(info)
    return v1.PromptOutput(tokens=infos)


def _usage(request: v1.GenerateRequest, outputs: list[_Output]) -> v1.Usage:
    prompt, produced = prompt_length(request), sum(output.produced for output in outputs)
    return v1.Usage(
        prompt_tokens=prompt,
        completion_tokens=produced,
        total_tokens=prompt + produced,
        cached_prompt_tokens=prompt // 2,
    )


def _response(
    request: v1.GenerateRequest,
    *,
    prompt: v1.PromptOutput | None = None,
    token: v1.TokenOutput | None = None,
    finished: v1.GenerationFinished | None = None,
    usage: v1.Usage | None = None,
) -> v1.GenerateResponse:
    return v1.GenerateResponse(
        request_id=request.request_id, prompt=prompt, token=token, finished=finished, usage=usage
    )
