"""The messages of one Generate call of the toy engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from oe_wire import v1
from tests.legacy_engine.behaviour import Behaviour, Key
from tests.legacy_engine.script import VOCABULARY, Script, logprob, order, write
from tests.legacy_engine.validate import WINDOW, prompt_of

# Seconds from token to token: long enough that calls overlap, short enough to wait for.
STEP = 0.001
# Candidates that an engine sends which promises all of them and keeps to its usual most.
FEW = 20


@dataclass(slots=True)
class Active:
    """A request that runs. sent: tokens sent so far, for all outputs."""

    request: v1.GenerateRequest
    request_id: str
    aborted: bool = False
    sent: int = 0
    closed: set[int] = field(default_factory=set)


async def generate(active: Active, behaviour: Behaviour) -> AsyncIterator[v1.GenerateResponse]:
    """Everything that is said about the request, prompt information first."""
    request = active.request
    prompt = prompt_of(request)
    if (told := _prompt(request, prompt, behaviour)) is not None:
        yield v1.GenerateResponse(request_id=active.request_id, prompt=told)
    most = request.stopping.max_tokens or behaviour.default_max_tokens or WINDOW - len(prompt)
    scripts = [
        write(request, prompt, index, most, behaviour)
        for index in range(max(1, request.sampling.num_sequences))
    ]
    position = 0
    while len(active.closed) < len(scripts):
        await asyncio.sleep(STEP)
        for index, script in enumerate(scripts):
            for response in _step(active, index, script, position, behaviour):
                _account(active, response, scripts, len(prompt))
                yield response
        position += 1


def _step(
    active: Active, index: int, script: Script, position: int, behaviour: Behaviour
) -> Iterator[v1.GenerateResponse]:
    if index in active.closed:
        return
    if active.aborted or position >= len(script.tokens):
        active.closed.add(index)
        yield v1.GenerateResponse(
            request_id=active.request_id, finished=_finished(active, index, script)
        )
        return
    active.sent += 1
    text = script.texts[position]
    if behaviour.text_ahead and active.request.stopping.conditions:
        # The text of a token is sent with the token before it.
        if position == 0:
            first = v1.TokenOutput(output_index=index, text=text)
            yield v1.GenerateResponse(request_id=active.request_id, token=first)
        later = script.texts[position + 1 : position + 2]
        text = later[0] if later else ""
    output = v1.TokenOutput(output_index=index, text=text)
    output.tokens.append(_record(active.request, script.tokens[position], position, behaviour))
    yield v1.GenerateResponse(request_id=active.request_id, token=output)


def _finished(active: Active, index: int, script: Script) -> v1.GenerationFinished:
    if active.aborted:
        return v1.GenerationFinished(output_index=index, reason=v1.FINISH_REASON_CANCELLED)
    finished = v1.GenerationFinished(output_index=index, reason=script.reason)
    if script.match is not None:
        finished.stop_match.CopyFrom(script.match)
    return finished


def _account(
    active: Active, response: v1.GenerateResponse, scripts: list[Script], prompt_tokens: int
) -> None:
    """Usage goes with the last terminal event."""
    if not response.HasField("finished") or len(active.closed) < len(scripts):
        return
    made = active.sent if active.aborted else sum(script.produced for script in scripts)
    response.usage.CopyFrom(
        v1.Usage(
            prompt_tokens=prompt_tokens,
            completion_tokens=made,
            total_tokens=prompt_tokens + made,
            cached_prompt_tokens=0,
        )
    )


def _record(request: v1.GenerateRequest, token: int, at: int, behaviour: Behaviour) -> v1.TokenInfo:
    info = v1.TokenInfo(token_id=token)
    if request.response.return_output_logprobs:
        _likelihood(info, at, request.response.output_candidates, behaviour)
    return info


def _likelihood(
    info: v1.TokenInfo, at: int, selection: v1.CandidateTokenSelection, behaviour: Behaviour
) -> None:
    ranked = order(info.token_id, at)
    info.rank = 1
    info.logprob = logprob(1)
    match selection.WhichOneof("selection"):
        case "top_n":
            chosen = ranked[: min(selection.top_n, behaviour.top_n)]
        case "token_ids":
            chosen = list(dict.fromkeys(selection.token_ids.ids))
        case "all":
            chosen = ranked[: FEW if behaviour.all_is_twenty else VOCABULARY]
        case _:
            chosen = []
    rank_of = {token: rank for rank, token in enumerate(ranked, 1)}
    for token in chosen:
        rank = rank_of[token]
        info.candidates.append(v1.LogProb(token_id=token, logprob=logprob(rank), rank=rank))


def _prompt(
    request: v1.GenerateRequest, prompt: list[int], behaviour: Behaviour
) -> v1.PromptOutput | None:
    options = request.response
    if not options.return_prompt_logprobs:
        return None
    start = 0 if behaviour.prompt_start is Key.IGNORED else options.prompt_logprob_start
    told = v1.PromptOutput()
    for at, token in enumerate(prompt):
        info = v1.TokenInfo(token_id=token)
        if at > 0 or behaviour.first_prompt_logprob:
            _likelihood(info, at, options.prompt_candidates, behaviour)
        if at >= start:
            told.tokens.append(info)
    return told
