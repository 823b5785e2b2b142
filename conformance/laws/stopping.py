"""Laws about why and where an output ends, from the request's own stopping options."""

from __future__ import annotations

from conformance.laws.law import Finding, Ruling, law
from conformance.laws.stream import (
    Finish,
    Output,
    final_usage,
    finishes,
    has_unknown,
    outputs,
    request_of,
)
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1


def stop_texts(request: v1.GenerateRequest) -> frozenset[str]:
    """The caller's stop texts."""
    conditions = request.stopping.conditions
    return frozenset(c.stop_text for c in conditions if c.HasField("stop_text"))


def stop_tokens(request: v1.GenerateRequest) -> frozenset[int]:
    """The caller's stop token ids."""
    conditions = request.stopping.conditions
    return frozenset(c.stop_token_id for c in conditions if c.HasField("stop_token_id"))


def stopped(finish: Finish) -> bool:
    """Whether the reason is STOP."""
    return finish.finished.reason == v1.FINISH_REASON_STOP


def reason_name(finish: Finish) -> str:
    """STOP, LENGTH, ..., or the number of a reason that this revision does not know."""
    value = v1.FinishReason.DESCRIPTOR.values_by_number.get(finish.finished.reason)
    name = str(finish.finished.reason) if value is None else value.name
    return name.removeprefix("FINISH_REASON_")


@law("OE-CORE-STREAM-014")
def match_with_stop_only(transcript: Transcript, _: Declared) -> Ruling:
    """A stop says what stopped it; an end by length or cancellation names no match."""
    judged = False
    for output, finish in finishes(transcript):
        finished = finish.finished
        unmatched = finish.match is None and not has_unknown(finished.stop_match)
        if stopped(finish):
            judged = True
            if not finished.HasField("stop_match") or unmatched:
                actual = f"index {output.index}: STOP without one"
                return Finding("a stop_match with a variant set", actual, finish.event)
        elif finished.reason in {v1.FINISH_REASON_LENGTH, v1.FINISH_REASON_CANCELLED}:
            judged = True
            if finished.HasField("stop_match"):
                actual = f"index {output.index}: {reason_name(finish)} with one"
                return Finding("no stop_match", actual, finish.event)
    return True if judged else None


@law("OE-CORE-STREAM-015", reads_content=True)
def match_is_the_callers(transcript: Transcript, _: Declared) -> Ruling:
    """The stop condition named is one that the caller gave, or the model's own end token."""
    request = request_of(transcript)
    judged = False
    if request is None:
        return None
    for output, finish in finishes(transcript):
        if not stopped(finish) or finish.match is None:
            continue
        judged = True
        match = finish.finished.stop_match
        foreign_text = finish.match == "stop_text" and match.stop_text not in stop_texts(request)
        tokens = stop_tokens(request)
        foreign_token = finish.match == "stop_token_id" and match.stop_token_id not in tokens
        if foreign_text or foreign_token:
            count = len(request.stopping.conditions)
            return Finding(
                f"one of the caller's {count} stop conditions, or eos_token_id",
                f"index {output.index}: a {finish.match} that the caller did not give",
                finish.event,
            )
    return True if judged else None


def _token_tail(request: v1.GenerateRequest, output: Output, finish: Finish) -> Ruling:
    token = finish.finished.stop_match.stop_token_id
    if token not in stop_tokens(request):
        return None
    records = output.records
    last = bool(records) and records[-1].info.token_id == token
    if request.stopping.include_stop_in_output:
        if last:
            return True
        actual = f"index {output.index}: the last of {len(records)} records is another"
        return Finding("the matched stop token as the last record", actual, finish.event)
    # Up to min_tokens the stop token may be ordinary output, so only what came later is certain.
    late = records[request.stopping.min_tokens :]
    hit = next((record for record in late if record.info.token_id == token), None)
    if hit is not None:
        actual = f"index {output.index}: record {hit.position} of {len(records)} is it"
        return Finding("the matched stop token withheld", actual, hit.event)
    return None if last else True


def _text_tail(request: v1.GenerateRequest, output: Output, finish: Finish) -> Ruling:
    text = finish.finished.stop_match.stop_text
    if not text or text not in stop_texts(request):
        return None
    if request.stopping.include_stop_in_output:
        if output.text.endswith(text):
            return True
        actual = f"index {output.index}: the text ends in something else"
        return Finding("the matched stop text at the end of the text", actual, finish.event)
    if request.stopping.min_tokens:
        return None  # an occurrence before min_tokens is ordinary output
    at = output.text.find(text)
    if at < 0:
        return True
    actual = f"index {output.index}: found at character {at} of {len(output.text)}"
    return Finding("the matched stop text withheld", actual, finish.event)


def _ran_past(request: v1.GenerateRequest, output: Output, finish: Finish) -> Ruling:
    """A condition that lies in an output which went on after it. Only records that came later
    are certain: a match in the last step may give way to the limit.
    """
    least = request.stopping.min_tokens
    if finish.finished.reason != v1.FINISH_REASON_LENGTH or request.HasField("guided"):
        return None
    listed = stop_tokens(request)
    last = output.records[-1].event if output.records else 0
    for record in output.records[least:]:
        if record.info.token_id in listed and record.event < last:
            actual = f"index {output.index}: it is record {record.position}, and more follow"
            return Finding("an end at the caller's stop token", actual, record.event)
    text = ""
    for delta in () if least else output.deltas:
        text += delta.token.text
        if delta.event < last and any(stop in text for stop in stop_texts(request) if stop):
            actual = f"index {output.index}: it is in the text, and more follows"
            return Finding("an end at the caller's stop text", actual, delta.event)
    return None


@law("OE-CORE-STREAM-016", reads_content=True)
def stop_shown_on_demand(transcript: Transcript, _: Declared) -> Ruling:
    """The caller's matched stop is the end of the output if asked for, and is left out if not."""
    request = request_of(transcript)
    if request is None:
        return None
    verdict: Ruling = None
    for output, finish in finishes(transcript):
        ruling: Ruling = None
        if stopped(finish) and finish.match == "stop_token_id":
            ruling = _token_tail(request, output, finish)
        elif stopped(finish) and finish.match == "stop_text":
            ruling = _text_tail(request, output, finish)
        else:
            ruling = _ran_past(request, output, finish)
        if isinstance(ruling, Finding):
            return ruling
        verdict = verdict or ruling
    return verdict


@law("OE-CORE-STREAM-017")
def eos_ignored(transcript: Transcript, _: Declared) -> Ruling:
    """A caller who ignores the model's end token never sees an output end on it."""
    request = request_of(transcript)
    # A guide that is complete leaves nothing but the end, so only unguided requests are certain.
    if request is None or not request.stopping.ignore_eos or request.HasField("guided"):
        return None
    judged = False
    for output, finish in finishes(transcript):
        judged = True
        eos = finish.finished.stop_match.eos_token_id
        if stopped(finish) and finish.match == "eos_token_id" and eos not in stop_tokens(request):
            actual = f"index {output.index}: STOP on eos_token_id {eos}"
            return Finding("no end on EOS: ignore_eos is true", actual, finish.event)
    return True if judged else None


def most_produced(transcript: Transcript, output: Output) -> int | None:
    """The most tokens that `output` can have produced, withheld ones included.

    One stop or EOS token may be withheld. A stop text may span several tokens, of which an engine
    may withhold more; then only the usage bounds them, and without usage nothing does (None).
    """
    finish = output.finish
    usage = final_usage(transcript)
    bound = len(output.records) + 1
    if usage is None:
        return None if finish is not None and finish.match == "stop_text" else bound
    everything = sum(len(each.records) for each in outputs(transcript).values())
    others = everything - len(output.records)
    return max(bound, usage[1].completion_tokens - others)


@law("OE-CORE-STREAM-018")
def minimum_reached(transcript: Transcript, _: Declared) -> Ruling:
    """An output does not stop before it has the least number of tokens asked for."""
    request = request_of(transcript)
    if request is None or not request.stopping.min_tokens:
        return None
    options = request.stopping
    if options.HasField("max_tokens") and options.max_tokens < options.min_tokens:
        return None
    judged = False
    for output, finish in finishes(transcript):
        produced = most_produced(transcript, output)
        if not stopped(finish) or produced is None:
            continue
        judged = True
        if produced < options.min_tokens:
            return Finding(
                f"no STOP before {options.min_tokens} tokens",
                f"index {output.index}: STOP after at most {produced}",
                finish.event,
            )
    return True if judged else None


def _hid_the_limit(request: v1.GenerateRequest, output: Output, finish: Finish) -> bool:
    """Whether an output that is as long as allowed ended without any cause but the limit, and
    gives another reason.
    """
    if len(output.records) < request.stopping.max_tokens:
        return False
    causes = request.stopping.conditions or request.HasField("guided")
    nothing_else = request.stopping.ignore_eos and not causes
    reason = finish.finished.reason
    return reason == v1.FINISH_REASON_UNSPECIFIED or (stopped(finish) and nothing_else)


@law("OE-CORE-STREAM-019")
def maximum_kept(transcript: Transcript, _: Declared) -> Ruling:
    """No output is longer than asked for, and one that the limit ends says LENGTH."""
    request = request_of(transcript)
    by_index = outputs(transcript)
    if request is None or not request.stopping.HasField("max_tokens") or not by_index:
        return None
    limit = request.stopping.max_tokens
    for output in by_index.values():
        records = output.records
        if len(records) > limit:
            actual = f"index {output.index}: {len(records)} records"
            return Finding(f"at most {limit} token records", actual, records[limit].event)
        finish = output.finish
        if finish is not None and _hid_the_limit(request, output, finish):
            actual = f"index {output.index}: {reason_name(finish)} after {len(records)} records"
            return Finding(f"reason LENGTH at {limit} tokens", actual, finish.event)
    return True


LAWS = (
    match_with_stop_only,
    match_is_the_callers,
    stop_shown_on_demand,
    eos_ignored,
    minimum_reached,
    maximum_kept,
)
