"""Laws about the token records of the prompt."""

from __future__ import annotations

from conformance.laws.law import Finding, Ruling, law
from conformance.laws.stream import prompts, request_of
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript


@law("OE-CORE-STREAM-009")
def first_has_no_past(transcript: Transcript, _: Declared) -> Ruling:
    """Nothing precedes the first prompt token, so nothing can have predicted it."""
    request = request_of(transcript)
    found = prompts(transcript)
    if request is None or request.response.prompt_logprob_start or not found:
        return None
    event, prompt = found[0]
    if not prompt.tokens:
        return None
    first = prompt.tokens[0]
    carried = [
        name
        for name, present in (
            ("logprob", first.HasField("logprob")),
            ("rank", first.HasField("rank")),
            ("candidates", bool(first.candidates)),
        )
        if present
    ]
    if carried:
        expected = "no logprob, rank or candidates on the first prompt token"
        return Finding(expected, ", ".join(carried), event)
    return True


@law("OE-CORE-STREAM-010", reads_content=True)
def one_record_per_token(transcript: Transcript, _: Declared) -> Ruling:
    """The prompt comes back token by token from the position the caller named."""
    request = request_of(transcript)
    found = prompts(transcript)
    if request is None or not request.HasField("token_ids") or request.media or not found:
        return None
    ids = list(request.token_ids.ids)
    start = request.response.prompt_logprob_start
    if start > len(ids):
        return None
    event, prompt = found[0]
    seen = [info.token_id for info in prompt.tokens]
    wanted = ids[start:]
    if len(seen) != len(wanted):
        return Finding(f"{len(wanted)} prompt records (from {start})", f"{len(seen)}", event)
    for at, (sent, got) in enumerate(zip(wanted, seen, strict=True)):
        if sent != got:
            return Finding(
                f"prompt record {at} is prompt token {start + at}", "another token id", event
            )
    return True


LAWS = (first_has_no_past, one_record_per_token)
