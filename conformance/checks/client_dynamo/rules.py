"""How a sidecar reads a Generate stream, as rules over the finished call (needs 20 to 30).

They hold for requests as the sidecar makes them; other requests may be answered otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.laws.law import Finding, Ruling
from conformance.laws.stream import (
    complete,
    errors,
    output_records,
    request_of,
    responses,
    sequences,
)
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

REASONS = frozenset({v1.FINISH_REASON_STOP, v1.FINISH_REASON_LENGTH, v1.FINISH_REASON_CANCELLED})


def names_its_request(transcript: Transcript, _: Declared) -> Ruling:
    """Each response belongs to the stream's own request."""
    request = request_of(transcript)
    if request is None or not responses(transcript):
        return None
    for at, response in responses(transcript):
        if response.request_id != request.request_id:
            return Finding("the request_id of the stream", "another one, or none", at)
    return True


def sets_an_event(transcript: Transcript, _: Declared) -> Ruling:
    """No response is without one of the five events that the client knows."""
    for at, response in responses(transcript):
        if response.WhichOneof("event") is None:
            return Finding("an event", "none", at)
    return True if responses(transcript) else None


def tokens_have_their_output(transcript: Transcript, _: Declared) -> Ruling:
    """Tokens say which output they belong to, one that was asked for and is not over."""
    request = request_of(transcript)
    count = 1 if request is None else sequences(request)
    over: set[int] = set()
    judged = False
    for at, response in responses(transcript):
        if response.HasField("finished"):
            over.add(response.finished.output_index)
        if not response.HasField("token"):
            continue
        judged = True
        index = response.token.output_index
        if not response.token.HasField("output_index"):
            return Finding("output_index on TokenOutput", "absent", at)
        if index >= count:
            return Finding(f"output_index below {count}", str(index), at)
        if index in over:
            return Finding(f"no token of output {index} after its end", "one", at)
    return True if judged else None


def ends_are_known(transcript: Transcript, _: Declared) -> Ruling:
    """Each output ends once, for a reason that the client knows."""
    over: set[int] = set()
    for at, response in responses(transcript):
        if not response.HasField("finished"):
            continue
        finished = response.finished
        if not finished.HasField("output_index"):
            return Finding("output_index on GenerationFinished", "absent", at)
        if finished.reason not in REASONS:
            return Finding("STOP, LENGTH or CANCELLED", f"the number {finished.reason}", at)
        if finished.output_index in over:
            return Finding(f"one end of output {finished.output_index}", "two", at)
        over.add(finished.output_index)
    return True if over else None


def usage_at_the_end(transcript: Transcript, _: Declared) -> Ruling:
    """Usage is on the last output's terminal event and nowhere else."""
    request = request_of(transcript)
    still = 1 if request is None else sequences(request)
    if not complete(transcript) or errors(transcript):
        return None
    for at, response in responses(transcript):
        last = response.HasField("finished") and still == 1
        still -= response.HasField("finished")
        if response.HasField("usage") and not last:
            where = response.WhichOneof("event") or "response without event"
            return Finding("no usage before the last terminal event", f"usage on a {where}", at)
        if last and not response.HasField("usage"):
            return Finding("usage on the last terminal event", "none", at)
    return True if still < 1 else None


def nothing_about_the_prompt(transcript: Transcript, _: Declared) -> Ruling:
    """The client never asks for prompt information."""
    for at, response in responses(transcript):
        if response.HasField("prompt"):
            return Finding("no PromptOutput", "one", at)
    return True if responses(transcript) else None


def ends_with_a_terminal(transcript: Transcript, _: Declared) -> Ruling:
    """A stream that the engine closes has said how each output ended."""
    request = request_of(transcript)
    if not complete(transcript):
        return None
    if errors(transcript):
        return True
    count = 1 if request is None else sequences(request)
    over = {r.finished.output_index for _, r in responses(transcript) if r.HasField("finished")}
    if len(over) < count:
        return Finding(f"{count} terminal event(s) before the end", f"{len(over)}")
    return True


def tokens_have_logprobs(transcript: Transcript, _: Declared) -> Ruling:
    """No token record is without its log probability when these were asked for."""
    records = [record for _, record in output_records(transcript)]
    for record in records:
        if not record.info.HasField("logprob"):
            expected = "logprob on every token record"
            return Finding(expected, f"none on record {record.position}", record.event)
    return True if records else None


def prefill_is_silent(transcript: Transcript, _: Declared) -> Ruling:
    """A prefill brings the session and nothing else."""
    for at, response in responses(transcript):
        event = response.WhichOneof("event")
        if event in {"token", "finished", "prompt"}:
            return Finding("PrefillReady or EngineError only", f"a {event} event", at)
    return True if responses(transcript) else None


def _sessions(transcript: Transcript) -> Iterator[tuple[int, v1.GenerateResponse]]:
    return ((at, r) for at, r in responses(transcript) if r.HasField("prefill_ready"))


def session_is_complete(transcript: Transcript, declared: Declared) -> Ruling:
    """A decode engine could attach to the session."""
    server = declared.server_info
    backend = "" if server is None else server.kv_connector.transfer_backend
    for at, response in _sessions(transcript):
        session = response.prefill_ready.kv_session
        if not (session.session_id and session.transfer_backend):
            return Finding("session_id and transfer_backend", "one of them is empty", at)
        if backend and session.transfer_backend != backend:
            return Finding("the connector's transfer_backend", "another one", at)
        for endpoint in session.endpoints:
            if not (endpoint.host and endpoint.protocol and 0 < endpoint.port < 65536):
                return Finding("endpoints with host, protocol and port", "an incomplete one", at)
        return True
    return None


def prefill_is_accounted(transcript: Transcript, _: Declared) -> Ruling:
    """The tokens of a prefill are reported with it."""
    for at, response in _sessions(transcript):
        return True if response.HasField("usage") else Finding("usage on PrefillReady", "none", at)
    return None
