"""Laws about what an output says: that it keeps to its guide, and that its text is whole."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.laws.languages import conforms, texts_of
from conformance.laws.law import Finding, Ruling, law
from conformance.laws.stream import Output, finishes, outputs, request_of
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

REPLACEMENT = "\ufffd"


@law("OE-CORE-STREAM-026", reads_content=True)
def keeps_to_guide(transcript: Transcript, _: Declared) -> Ruling:
    """What ended by itself is one of the texts that its guide allows.

    An output that was cut, by its length or by a condition of the caller, proves nothing.
    """
    request = request_of(transcript)
    if request is None or not request.HasField("guided"):
        return None
    judged = False
    for output, finish in finishes(transcript):
        if finish.finished.reason != v1.FINISH_REASON_STOP:
            continue
        if finish.match not in {None, "eos_token_id"}:
            continue
        fits = conforms(request.guided, output.text)
        if fits is None:
            continue
        judged = True
        if not fits:
            kind = request.guided.WhichOneof("guide")
            expected = f"an output that the guide ({kind}) allows, since the reason is STOP"
            return Finding(expected, f"index {output.index} is not one", finish.event)
    return True if judged else None


def _torn(output: Output) -> Iterator[int]:
    for delta in output.deltas:
        if REPLACEMENT in delta.token.text:
            yield delta.event


@law("OE-CORE-STREAM-025", reads_content=True)
def whole_characters(transcript: Transcript, _: Declared) -> Ruling:
    """No message holds a part of a character.

    Bytes that are no UTF-8 are named by the reader of the messages. What an engine put in their
    place is certain to be wrong only where the guide lists every text that may come.
    """
    torn = "token.text is not valid UTF-8"
    if torn in transcript.ending.details and not transcript.ending.ok:
        return Finding("text of whole characters", torn, len(transcript.events))
    request = request_of(transcript)
    allowed = () if request is None else tuple(texts_of(request.guided))
    sure = bool(allowed) and not any(REPLACEMENT in text for text in allowed)
    judged = False
    for output in outputs(transcript).values():
        event = next(_torn(output), None) if sure else None
        if event is not None:
            actual = f"U+FFFD, which no choice holds, at index {output.index}"
            return Finding("an incomplete character held back", actual, event)
        judged = judged or not output.text.isascii()
    return True if judged else None


LAWS = (keeps_to_guide, whole_characters)
