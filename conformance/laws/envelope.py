"""Laws about the shape and order of a stream's events, whatever their content."""

from __future__ import annotations

import grpc

from conformance.laws.law import Finding, Ruling, law
from conformance.laws.stream import (
    end_of_stream,
    ended_by_engine,
    errors,
    handed_off,
    has_unknown,
    output_index,
    outputs,
    prompts,
    request_of,
    responses,
    sequences,
    succeeded,
)
from conformance.wire.declared import Declared
from conformance.wire.transcript import ActionKind, Origin, Transcript

# After its last event an engine only has to write the trailers. A stream that is still open this
# many seconds later when the call's deadline strikes was not ended; a slow machine ends it sooner.
OPEN_AFTER_END_SECONDS = 5.0


@law("OE-CORE-STREAM-001")
def echoed_id(transcript: Transcript, _: Declared) -> Ruling:
    """Each response names the request it belongs to, byte for byte."""
    request = request_of(transcript)
    answers = responses(transcript)
    if request is None or not request.request_id or not answers:
        return None
    for at, response in answers:
        if response.request_id != request.request_id:
            return Finding(
                f"request_id {request.request_id[:60]!r} on every response",
                f"request_id {response.request_id[:60]!r}",
                at,
            )
    return True


@law("OE-CORE-STREAM-002")
def one_variant(transcript: Transcript, _: Declared) -> Ruling:
    """No response is empty: each holds one event, possibly of a kind newer than this suite."""
    answers = responses(transcript)
    for at, response in answers:
        if response.WhichOneof("event") is None and not has_unknown(response):
            return Finding("one event variant set", "no event variant and no unknown field", at)
    return True if answers else None


@law("OE-CORE-STREAM-003")
def index_present(transcript: Transcript, _: Declared) -> Ruling:
    """Token and terminal events say which output they belong to, and that output was asked for."""
    request = request_of(transcript)
    judged = False
    for at, response in responses(transcript):
        if response.HasField("token"):
            present = response.token.HasField("output_index")
        elif response.HasField("finished"):
            present = response.finished.HasField("output_index")
        else:
            continue
        judged = True
        if not present:
            return Finding("output_index present, also for 0", "output_index absent", at)
        index = output_index(response)
        if request is not None and index is not None and index >= sequences(request):
            return Finding(f"output_index in [0, {sequences(request)})", f"{index}", at)
    return True if judged else None


@law("OE-CORE-STREAM-005")
def one_finish_per_index(transcript: Transcript, declared: Declared) -> Ruling:
    """A request that went well finishes each of its outputs exactly once."""
    request = request_of(transcript)
    if request is None or not succeeded(transcript) or declared.role == "prefill":
        return None
    plain = declared.role in {"aggregated", "decode"} and not request.HasField("extra")
    if handed_off(transcript) and not plain:
        return None  # a prefill request: the role is unknown, or `extra` asked for the phase
    by_index = outputs(transcript)
    for index in range(sequences(request)):
        output = by_index.get(index)
        count = 0 if output is None else len(output.finishes)
        if count != 1:
            event = output.finishes[1].event if output is not None and count > 1 else None
            return Finding(
                f"one GenerationFinished for each of {sequences(request)} indexes",
                f"{count} for index {index}",
                event,
            )
    return True


@law("OE-CORE-STREAM-006")
def quiet_after_finish(transcript: Transcript, _: Declared) -> Ruling:
    """Once an output is finished, no event speaks of it again."""
    finished: dict[int, int] = {}
    for at, response in responses(transcript):
        index = output_index(response)
        if index is None:
            continue
        if index in finished:
            return Finding(
                f"no event for index {index} after its finish at event {finished[index]}",
                f"a {response.WhichOneof('event')} event",
                at,
            )
        if response.HasField("finished"):
            finished[index] = at
    return True if finished else None


@law("OE-CORE-STREAM-007")
def prompt_on_demand(transcript: Transcript, _: Declared) -> Ruling:
    """Prompt information comes once, and only to a caller who asked for it."""
    request = request_of(transcript)
    if request is None or not responses(transcript):
        return None
    options = request.response
    asked = (
        options.return_prompt_logprobs
        or options.HasField("prompt_candidates")
        or options.HasField("prompt_logprob_start")
    )
    found = prompts(transcript)
    if found and not asked:
        return Finding("no PromptOutput: none was asked for", "a PromptOutput", found[0][0])
    if len(found) > 1:
        return Finding("at most one PromptOutput", f"{len(found)}", found[1][0])
    return True


@law("OE-CORE-STREAM-008")
def prompt_first(transcript: Transcript, _: Declared) -> Ruling:
    """Prompt information comes before the first output token."""
    found = prompts(transcript)
    if not found:
        return None
    for at, response in responses(transcript):
        if response.HasField("token") and at < found[-1][0]:
            return Finding(
                "PromptOutput before every TokenOutput",
                f"PromptOutput after the TokenOutput at event {at}",
                found[-1][0],
            )
    return True


@law("OE-CORE-STREAM-011")
def error_is_last(transcript: Transcript, _: Declared) -> Ruling:
    """A reported failure is the last event, and the call around it still ends well."""
    failures = errors(transcript)
    if not failures:
        return None
    first = failures[0][0]
    if len(transcript.events) > first + 1:
        late = len(transcript.events) - first - 1
        return Finding("nothing after the EngineError", f"{late} more event(s)", first + 1)
    ending = transcript.ending
    if ending.origin is Origin.REMOTE and not ending.ok:
        return Finding("status OK after the EngineError", f"status {ending.code.name}", first)
    return True


@law("OE-CORE-STREAM-012")
def ends_after_terminal(transcript: Transcript, _: Declared) -> Ruling:
    """When the last terminal event is out, the engine says no more and closes with OK."""
    end = end_of_stream(transcript)
    if end is None:
        return None
    if len(transcript.events) > end + 1:
        late = len(transcript.events) - end - 1
        return Finding(f"nothing after event {end}, the end", f"{late} more event(s)", end + 1)
    ending = transcript.ending
    if ending.origin is Origin.REMOTE:
        return True if ending.ok else Finding("status OK", f"status {ending.code.name}", end)
    expired = ending.code is grpc.StatusCode.DEADLINE_EXCEEDED
    silence = ending.seconds - transcript.events[end].seconds
    if expired and silence >= OPEN_AFTER_END_SECONDS and not transcript.acted(ActionKind.CANCEL):
        return Finding("the stream ends after its end", f"open {silence:.1f} s later", end)
    return True


@law("OE-CORE-STREAM-013")
def ok_means_finished(transcript: Transcript, _: Declared) -> Ruling:
    """A stream closed with OK left no output without an end."""
    request = request_of(transcript)
    if request is None or not ended_by_engine(transcript):
        return None
    if errors(transcript) or handed_off(transcript):
        return True
    finished = {index for index, output in outputs(transcript).items() if output.finish}
    missing = sorted(set(range(sequences(request))) - finished)
    if missing:
        return Finding(
            f"a terminal event for each of {sequences(request)} indexes, or an EngineError",
            f"status OK, no terminal event for index {missing[0]}",
        )
    return True


@law("OE-CORE-STREAM-024")
def no_empty_output(transcript: Transcript, _: Declared) -> Ruling:
    """A TokenOutput brings something: a token record or text."""
    judged = False
    for at, response in responses(transcript):
        if response.HasField("token"):
            judged = True
            if not response.token.tokens and not response.token.text:
                return Finding("a token record or text", "neither", at)
    return True if judged else None


LAWS = (
    echoed_id,
    one_variant,
    index_present,
    one_finish_per_index,
    quiet_after_finish,
    prompt_on_demand,
    prompt_first,
    error_is_last,
    ends_after_terminal,
    ok_means_finished,
    no_empty_output,
)
