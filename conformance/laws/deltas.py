"""The law that a stream sends what is new, never what was sent before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from conformance.laws.law import Finding, Ruling, law
from conformance.laws.stream import Output, final_usage, outputs, request_of
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript

# So many messages must each repeat all that came before and add to it. A model that repeats
# itself does that too when the engine happens to send ever longer chunks, hence the count of
# tokens decides where it is known, and repetitive content needs the longer run.
GROWTHS = 3
GROWTHS_OF_REPETITION = 8

Part = str | tuple[int, ...]
Parts = Sequence[tuple[int, Part]]


def growths(parts: Parts) -> tuple[int, ...]:
    """Events whose part is the part before plus something; empty unless every part repeats the
    one before it in whole, which is what cumulative sending looks like.
    """
    grown: list[int] = []
    for (_, before), (event, part) in pairwise(parts):
        if part[: len(before)] != before:
            return ()
        if len(part) > len(before):
            grown.append(event)
    return tuple(grown)


def periodic(part: Part) -> bool:
    """Whether `part` is some shorter piece over and over, the last time possibly cut short."""
    return any(part[p:] == part[:-p] for p in range(1, len(part) // 2 + 1))


def _suspect(parts: Parts) -> int | None:
    """Event at which `parts` are beyond doubt cumulative as far as content alone can say."""
    grown = growths(parts)
    needed = GROWTHS_OF_REPETITION if parts and periodic(parts[-1][1]) else GROWTHS
    return grown[needed - 1] if len(grown) >= needed else None


def _too_many(transcript: Transcript, output: Output) -> bool | None:
    """Whether more records came than tokens can have been produced; None when nothing tells."""
    request = request_of(transcript)
    stopping = None if request is None else request.stopping
    limited = stopping is not None and stopping.HasField("max_tokens")
    if stopping is not None and limited and len(output.records) > stopping.max_tokens:
        return True
    usage = final_usage(transcript)
    if usage is None:
        return None
    total = sum(len(each.records) for each in outputs(transcript).values())
    return total > usage[1].completion_tokens


def _judge(transcript: Transcript, output: Output) -> Ruling:
    ids: Parts = [
        (delta.event, tuple(info.token_id for info in delta.token.tokens))
        for delta in output.deltas
        if delta.token.tokens
    ]
    texts: Parts = [(delta.event, delta.token.text) for delta in output.deltas if delta.token.text]
    if max(len(ids), len(texts)) <= GROWTHS:
        return None
    if len(grown := growths(ids)) >= GROWTHS:
        excess = _too_many(transcript, output)
        if excess is False:
            return True  # no more records than tokens: an output that repeats itself
        event = grown[GROWTHS - 1] if excess else _suspect(ids)
        if event is not None:
            return Finding("only new token records", f"index {output.index} repeats all", event)
    if (event := _suspect(texts)) is not None:
        return Finding("only new text", f"index {output.index} repeats all text before", event)
    return True


@law("OE-CORE-STREAM-004", reads_content=True)
def only_news(transcript: Transcript, _: Declared) -> Ruling:
    """No output grows by resending itself: not its text, not its token records."""
    rulings = [_judge(transcript, output) for output in outputs(transcript).values()]
    found = next((ruling for ruling in rulings if isinstance(ruling, Finding)), None)
    return found or (True if True in rulings else None)


LAWS = (only_news,)
