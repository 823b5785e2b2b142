"""Laws about the token counts that an engine reports."""

from __future__ import annotations

from conformance.laws.law import Finding, Ruling, law
from conformance.laws.stream import (
    complete,
    ended_by_engine,
    errors,
    final_usage,
    finishes,
    handed_off,
    output_records,
    outputs,
    request_of,
    responses,
    sequences,
    succeeded,
    usages,
)
from conformance.wire.declared import Declared
from conformance.wire.transcript import ActionKind, Transcript
from oe_wire import v1


@law("OE-CORE-USE-001")
def on_the_last_only(transcript: Transcript, _: Declared) -> Ruling:
    """The account comes once, with the last response, when a call runs to its end."""
    answers = responses(transcript)
    found = usages(transcript)
    if not answers:
        return None
    last, final = answers[-1]
    early = [at for at, _ in found if at != last]
    if early:
        return Finding("no usage before the final response", "usage", early[0])
    # Whether a terminal EngineError needs usage depends on what came before: another law.
    if not complete(transcript) or final.HasField("error"):
        return True if len(answers) > 1 else None
    if not found:
        return Finding("usage on the final response", "no usage on any response", last)
    return True


@law("OE-CORE-USE-002")
def counts_every_token(transcript: Transcript, _: Declared) -> Ruling:
    """The count of tokens is what was sent plus, per stopped output, at most one withheld."""
    request = request_of(transcript)
    usage = final_usage(transcript)
    if request is None or usage is None or not succeeded(transcript):
        return None
    ends = [finish.finished.reason for _, finish in finishes(transcript)]
    # A cancelled output may have produced more than was sent; after a hand-over the first token
    # was produced elsewhere.
    whole = len(ends) == sequences(request) and v1.FINISH_REASON_CANCELLED not in ends
    if not whole or handed_off(transcript) or request.kv.HasField("session"):
        return None
    sent = sum(1 for _ in output_records(transcript))
    most = sent + ends.count(v1.FINISH_REASON_STOP)
    counted = usage[1].completion_tokens
    if not sent <= counted <= most:
        withheld = "" if most == sent else f" (to {most} with withheld stop tokens)"
        return Finding(f"completion_tokens {sent}{withheld}", f"{counted}", usage[0])
    return True


@law("OE-CORE-USE-003")
def total_is_the_sum(transcript: Transcript, _: Declared) -> Ruling:
    """The total is the prompt's tokens and the produced ones together."""
    found = usages(transcript)
    for event, usage in found:
        total = usage.prompt_tokens + usage.completion_tokens
        if usage.total_tokens != total:
            expected = f"{usage.prompt_tokens} + {usage.completion_tokens} = {total} total_tokens"
            return Finding(expected, f"{usage.total_tokens}", event)
    return True if found else None


@law("OE-CORE-USE-004")
def prompt_counted_once(transcript: Transcript, _: Declared) -> Ruling:
    """A prompt of token ids counts as many tokens as it has, however many outputs it gets."""
    request = request_of(transcript)
    usage = final_usage(transcript)
    if request is None or usage is None or not succeeded(transcript):
        return None
    if not request.HasField("token_ids") or request.media:
        return None
    sent, counted = len(request.token_ids.ids), usage[1].prompt_tokens
    if counted != sent:
        outputs_asked = sequences(request)
        expected = f"prompt_tokens {sent} (num_sequences {outputs_asked})"
        return Finding(expected, f"{counted}", usage[0])
    return True


@law("OE-CORE-USE-005")
def parts_within_wholes(transcript: Transcript, _: Declared) -> Ruling:
    """Cached tokens are some of the prompt's, reasoning tokens some of the produced ones."""
    judged = False
    for event, usage in usages(transcript):
        parts = (
            ("cached_prompt_tokens", usage.cached_prompt_tokens, usage.prompt_tokens)
            if usage.HasField("cached_prompt_tokens")
            else None,
            ("reasoning_tokens", usage.reasoning_tokens, usage.completion_tokens)
            if usage.HasField("reasoning_tokens")
            else None,
        )
        for part in parts:
            if part is None:
                continue
            judged = True
            name, value, whole = part
            if value > whole:
                return Finding(f"{name} at most {whole}", f"{value}", event)
    return True if judged else None


@law("OE-CORE-USE-006")
def bypass_takes_nothing(transcript: Transcript, _: Declared) -> Ruling:
    """A request that goes past the prefix cache has none of its prompt from there."""
    request = request_of(transcript)
    usage = final_usage(transcript)
    if request is None or usage is None or not request.kv.bypass_prefix_cache:
        return None
    if usage[1].cached_prompt_tokens:
        actual = f"{usage[1].cached_prompt_tokens}"
        return Finding("cached_prompt_tokens absent or 0 with the bypass", actual, usage[0])
    return True


@law("OE-CORE-USE-008")
def failure_is_accounted(transcript: Transcript, _: Declared) -> Ruling:
    """A failure after the first token still tells what was used until then."""
    found = errors(transcript)
    if not found:
        return None
    event = found[0][0]
    sent = sum(1 for _, record in output_records(transcript) if record.event < event)
    if not sent:
        return None
    if dict(responses(transcript))[event].HasField("usage"):
        return True
    return Finding("usage on the EngineError", f"none, after {sent} token record(s)", event)


def cancelled(transcript: Transcript) -> bool:
    """Whether some output ended as CANCELLED, by either of the two events that can say so."""
    by_finish = any(
        finish.finished.reason == v1.FINISH_REASON_CANCELLED for _, finish in finishes(transcript)
    )
    return by_finish or any(
        error.code == v1.ERROR_CODE_CANCELLED for _, error in errors(transcript)
    )


@law("OE-CORE-USE-009")
def abort_is_accounted(transcript: Transcript, _: Declared) -> Ruling:
    """An aborted request accounts at least for the tokens that it sent."""
    sent = sum(len(output.records) for output in outputs(transcript).values())
    aborted = transcript.acted(ActionKind.ABORT) and ended_by_engine(transcript)
    if not aborted or not cancelled(transcript) or not sent:
        return None
    usage = final_usage(transcript)
    expected = f"completion_tokens of at least {sent}"
    if usage is None:
        last = responses(transcript)[-1][0]
        return Finding(expected, "no usage on the final response", last)
    if usage[1].completion_tokens < sent:
        return Finding(expected, f"{usage[1].completion_tokens}", usage[0])
    return True


LAWS = (
    on_the_last_only,
    counts_every_token,
    total_is_the_sum,
    prompt_counted_once,
    parts_within_wholes,
    bypass_takes_nothing,
    failure_is_accounted,
    abort_is_accounted,
)
