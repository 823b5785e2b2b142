"""A model of a right engine: random requests and every stream that may answer them.

Single-character tokens, one fixed distribution. What the protocol leaves to engines is drawn:
chunking, interleaving, whether an end token is shown or counted, how an abort ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import grpc
from hypothesis import strategies as st

from conformance.wire.transcript import ActionKind, Transcript
from oe_wire import v1
from tests.conformance.laws.build import (
    CANCELLED,
    LENGTH,
    STOP,
    ending,
    failed,
    finished,
    info,
    prompt,
    rejected,
    request,
    stream,
    tokens,
    usage,
    with_usage,
)

EOS = 0
TEXTS = ("", *"abcdeé語hijk")
# Every output belongs to it.
GUIDE = "[a-k語é]*"
VOCABULARY = range(len(TEXTS))
DEFAULT_MAX_TOKENS = 6


@dataclass
class Sequence:
    """One output in the making: what was produced, what is shown of it, and why it ended."""

    produced: list[int] = field(default_factory=list)
    shown: list[int] = field(default_factory=list)
    text: str = ""
    end: v1.GenerateResponse | None = None


def _maybe(values: st.SearchStrategy[int]) -> st.SearchStrategy[int | None]:
    return st.none() | values


@st.composite
def selections(draw: st.DrawFn) -> v1.CandidateTokenSelection | None:
    """No selection, or one of each kind."""
    chosen = v1.CandidateTokenSelection()
    match draw(st.sampled_from(["none", "top_n", "token_ids", "all"])):
        case "none":
            return None
        case "top_n":
            chosen.top_n = draw(st.integers(0, 3))
        case "token_ids":
            ids = draw(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=3, unique=True))
            chosen.token_ids.ids.extend(ids)
        case _:
            chosen.all.SetInParent()
    return chosen


@st.composite
def options(draw: st.DrawFn) -> v1.ResponseOptions | None:
    """What to return beside the tokens."""
    built = v1.ResponseOptions()
    if draw(st.booleans()):
        built.return_output_logprobs = draw(st.booleans())
    if built.return_output_logprobs and (chosen := draw(selections())) is not None:
        built.output_candidates.CopyFrom(chosen)
    if draw(st.booleans()):
        built.return_prompt_logprobs = True
        if (chosen := draw(selections())) is not None:
            built.prompt_candidates.CopyFrom(chosen)
        if draw(st.booleans()):
            built.prompt_logprob_start = draw(st.integers(0, 2))
    return draw(st.sampled_from([built, built, None]))


@st.composite
def requests(draw: st.DrawFn) -> v1.GenerateRequest:
    """A valid request."""
    stops: st.SearchStrategy[int | str] = st.sampled_from([1, 2, 3, EOS, "b", "bc", "cab"])
    text = draw(st.sampled_from([None, "tell me about sunflowers"]))
    built = request(
        draw(st.lists(st.sampled_from(VOCABULARY), min_size=2, max_size=5)),
        prompt=text,
        n=draw(_maybe(st.integers(1, 3))),
        stop=draw(st.lists(stops, max_size=3)),
        response=draw(options()),
    )
    if (most := draw(_maybe(st.integers(1, 10)))) is not None:
        built.stopping.max_tokens = most
    if (least := draw(_maybe(st.integers(0, 4)))) is not None:
        built.stopping.min_tokens = min(least, most or DEFAULT_MAX_TOKENS)
    for flag in ("ignore_eos", "include_stop_in_output"):
        if draw(st.booleans()):
            setattr(built.stopping, flag, draw(st.booleans()))
    if draw(st.booleans()):
        built.kv.bypass_prefix_cache = draw(st.booleans())
    if draw(st.integers(0, 3)) == 0:
        built.guided.regex = GUIDE
    return built


def _stop_text(request: v1.GenerateRequest, text: str) -> tuple[int, str] | None:
    """The stop text that the last character completes, and where it starts."""
    for condition in request.stopping.conditions:
        if condition.stop_text and text.endswith(condition.stop_text):
            return len(text) - len(condition.stop_text), condition.stop_text
    return None


def _step(
    draw: st.DrawFn, request: v1.GenerateRequest, out: Sequence
) -> v1.GenerateResponse | None:
    """Produce one token; return the terminal event (of index 0) when it ends the output."""
    stopping = request.stopping
    stop_ids = {c.stop_token_id for c in stopping.conditions if c.HasField("stop_token_id")}
    token = draw(st.sampled_from([1, 2, 3, 4, 5, 6, EOS]))
    early = len(out.produced) < stopping.min_tokens
    if token == EOS and (early or (stopping.ignore_eos and EOS not in stop_ids)):
        token = 7
    out.produced.append(token)
    if not early and token in stop_ids:
        if stopping.include_stop_in_output:
            out.shown.append(token)
            out.text += TEXTS[token]
        return finished(0, STOP, token=token)
    if token == EOS:
        if draw(st.booleans()):
            out.shown.append(token)
        return finished(0, STOP, eos=EOS)
    out.shown.append(token)
    out.text += TEXTS[token]
    match = _stop_text(request, out.text)
    if match is not None and len(out.produced) >= stopping.min_tokens:
        if not stopping.include_stop_in_output:
            out.text = out.text[: match[0]]
            if draw(st.booleans()):
                out.shown.pop()
        return finished(0, STOP, text=match[1])
    most = stopping.max_tokens or DEFAULT_MAX_TOKENS
    return finished(0, LENGTH) if len(out.produced) == most else None


def _record(token: int, asked: bool, selection: v1.CandidateTokenSelection | None) -> v1.TokenInfo:
    """A record with the fixed distribution: the lower the id, the likelier the token."""
    if not asked:
        return info(token)
    chosen: list[int] = []
    if selection is not None and selection.HasField("top_n"):
        chosen = list(VOCABULARY)[: selection.top_n]
    elif selection is not None and selection.HasField("token_ids"):
        chosen = list(selection.token_ids.ids)
    elif selection is not None and selection.HasField("all"):
        chosen = list(VOCABULARY)
    return info(token, -0.1 * token, token + 1, [(each, each + 1) for each in chosen])


def _chunks(
    draw: st.DrawFn, request: v1.GenerateRequest, index: int, out: Sequence
) -> list[v1.GenerateResponse]:
    """The events of one output: up to three records each, text in time or late, then the end."""
    wants = request.response
    selection = wants.output_candidates if wants.HasField("output_candidates") else None
    events: list[v1.GenerateResponse] = []
    records, text = list(out.shown), out.text
    while records or text:
        size = draw(st.integers(1, 3))
        # Text that a stop might still take away is held back until the end.
        length = len(text) if len(records) <= size else draw(st.integers(0, size))
        head = [_record(token, wants.return_output_logprobs, selection) for token in records[:size]]
        events.append(tokens(index, head, text[:length]))
        records, text = records[size:], text[length:]
    if out.end is not None:
        out.end.finished.output_index = index
        events.append(out.end)
    return events


def _prompt_event(request: v1.GenerateRequest) -> list[v1.GenerateResponse]:
    wants = request.response
    if not wants.return_prompt_logprobs:
        return []
    ids = list(request.token_ids.ids) or [1, 2, 3, 4]
    selection = wants.prompt_candidates if wants.HasField("prompt_candidates") else None
    records = [_record(token, at > 0, selection) for at, token in enumerate(ids)]
    return [prompt(*records[wants.prompt_logprob_start :])]


def _interleave(
    draw: st.DrawFn, queues: list[list[v1.GenerateResponse]]
) -> list[v1.GenerateResponse]:
    merged: list[v1.GenerateResponse] = []
    while queues := [queue for queue in queues if queue]:
        merged.append(draw(st.sampled_from(queues)).pop(0))
    return merged


def _sent(events: list[v1.GenerateResponse]) -> int:
    return sum(len(event.token.tokens) for event in events)


def _cut(
    draw: st.DrawFn, request: v1.GenerateRequest, events: list[v1.GenerateResponse], indexes: int
) -> Transcript:
    """The call after an interference: cancelled by the client, aborted from aside, or failed."""
    at = draw(st.integers(0, len(events)))
    kept = events[:at]
    done = {event.finished.output_index for event in kept if event.HasField("finished")}
    kind = draw(st.sampled_from(["cancel", "abort", "abort by error", "failure"]))
    if kind == "cancel":
        end = ending(grpc.StatusCode.CANCELLED, local=True)
        return stream(request, *kept, end=end, actions=[ActionKind.CANCEL])
    counted = usage(len(request.token_ids.ids), _sent(kept) + draw(st.integers(0, 2)))
    if kind == "failure":
        code = draw(st.sampled_from([v1.ERROR_CODE_INTERNAL, v1.ERROR_CODE_OVERLOADED]))
        broken = [event for event in kept if not event.HasField("finished")]
        return stream(request, *broken, failed(code, retryable=True), usage=counted)
    if len(done) == indexes or kind == "abort by error":
        kept = [event for event in kept if not event.HasField("finished")]
        kept.append(failed(v1.ERROR_CODE_CANCELLED))
    else:
        kept += [finished(each, CANCELLED) for each in range(indexes) if each not in done]
    return stream(request, *kept, usage=counted, actions=[ActionKind.ABORT])


@st.composite
def calls(draw: st.DrawFn) -> Transcript:
    """One call that breaks no rule, by whatever end."""
    asked = draw(requests())
    if draw(st.integers(0, 9)) == 0:
        details = "max_tokens is too large"
        return rejected(details=details, sent=asked, code="INVALID_ARGUMENT", retryable="false")
    indexes = max(1, asked.sampling.num_sequences)
    outs = [Sequence() for _ in range(indexes)]
    for out in outs:
        while out.end is None:
            out.end = _step(draw, asked, out)
    queues = [_chunks(draw, asked, index, out) for index, out in enumerate(outs)]
    events = _prompt_event(asked) + _interleave(draw, queues)
    if draw(st.integers(0, 4)) == 0:
        return _cut(draw, asked, events, indexes)
    produced, sent = sum(len(out.produced) for out in outs), _sent(events)
    counted = usage(len(asked.token_ids.ids) or 4, draw(st.integers(sent, produced)))
    most = 0 if asked.kv.bypass_prefix_cache else counted.prompt_tokens
    counted.cached_prompt_tokens = draw(st.integers(0, most))
    counted.reasoning_tokens = draw(st.integers(0, counted.completion_tokens))
    with_usage(events[-1], counted)
    message = draw(st.sampled_from(["", "done"]))
    if events[-1].HasField("finished"):
        events[-1].finished.message = message
    late = draw(st.sampled_from([[], [], [ActionKind.ABORT]]))
    return stream(asked, *events, actions=late)
