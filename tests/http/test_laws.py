"""Laws judge any bytes that a server may send, and only what they are about."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.http.exchange import End, Exchange
from conformance.laws.http import http_laws, judge_exchange
from conformance.laws.http.errors import envelope_problem
from conformance.laws.law import Finding
from conformance.mutants.http import chat, completions, responses
from conformance.mutants.http.ask import MODEL, Ask
from conformance.mutants.http.reply import Event, sse_bytes
from conformance.runtimes.contracts import http_registry
from conformance.runtimes.profile import Envelope
from tests.http.laws import DECLARED, answered, sse, streamed

CONTRACTS = ("openai-chat", "openai-completions", "openai-responses")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 3)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "stop", "assistant", "completed", "response.created", "[DONE]"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)
ASKED = {
    "openai-chat": (chat.chat, {"messages": [{"role": "user", "content": "Please RUN"}]}),
    "openai-completions": (completions.completions, {"prompt": "Please RUN"}),
    "openai-responses": (responses.responses, {"input": "Please RUN"}),
}


def right(contract: str, *, stream: bool) -> list[Event]:
    """What the right server answers: the events of a stream, or one with the body."""
    answer, fields = ASKED[contract]
    asked: dict[str, Any] = {"model": MODEL, "stream": stream} | fields
    if contract != "openai-responses" and stream:
        asked["stream_options"] = {"include_usage": True}
    reply = answer(Ask("POST", "", json=asked))
    return [Event(reply.body)] if reply.events is None else list(reply.events)


@st.composite
def spoiled(draw: st.DrawFn, *, stream: bool) -> tuple[str, list[Event]]:
    """A right answer with one value somewhere in it replaced, or taken out."""
    contract = draw(st.sampled_from(CONTRACTS))
    events = right(contract, stream=stream)
    event = draw(st.sampled_from([e for e in events if isinstance(e.data, dict)]))
    event.data = copy.deepcopy(event.data)
    holder: Any = event.data
    while True:
        keys = sorted(holder) if isinstance(holder, dict) else range(len(holder))
        key = draw(st.sampled_from(list(keys)))
        inner = holder[key]
        if isinstance(inner, dict | list) and inner and draw(st.booleans()):
            holder = inner
            continue
        if draw(st.booleans()):
            holder[key] = draw(VALUES)
        else:
            del holder[key]
        return contract, events


def findings(exchange: Exchange) -> dict[str, Finding]:
    ruled = judge_exchange(exchange, DECLARED)
    return {name: ruling for name, ruling in ruled.items() if isinstance(ruling, Finding)}


def test_each_law_is_a_row() -> None:
    """A law speaks for a requirement that exists."""
    assert set(http_laws()) <= set(http_registry().by_id)


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_right_answer_breaks_nothing(contract: str, stream: bool) -> None:
    """Laws keep quiet about what the right server says, and some of them have judged it."""
    exchange = as_exchange(contract, right(contract, stream=stream), stream=stream)
    assert findings(exchange) == {}
    assert sum(ruling is True for ruling in judge_exchange(exchange, DECLARED).values()) >= 4


@settings(max_examples=300, deadline=None)
@given(st.booleans().flatmap(lambda stream: st.tuples(st.just(stream), spoiled(stream=stream))))
def test_no_answer_breaks_a_law(drawn: tuple[bool, tuple[str, list[Event]]]) -> None:
    """Whatever one value of an answer is, every law gives a ruling."""
    stream, (contract, events) = drawn
    findings(as_exchange(contract, events, stream=stream))


def as_exchange(contract: str, events: list[Event], *, stream: bool) -> Exchange:
    """The events, or the one body, as a finished call."""
    if not stream:
        return answered(contract, json.dumps(events[0].data).encode(), request=ASKED[contract][1])
    options = {} if contract == "openai-responses" else {"include_usage": True}
    body = b"".join(sse_bytes(event) for event in events)
    return streamed(contract, body, stream_options=options)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(CONTRACTS),
    st.binary(max_size=80),
    st.sampled_from(list(End)),
    st.sampled_from(["application/json", "text/event-stream", "text/plain", ""]),
)
def test_no_bytes_break_a_law(contract: str, body: bytes, end: End, media_type: str) -> None:
    """Whatever bytes come, and however the call ends."""
    findings(answered(contract, body, media_type=media_type, end=end, request={"stream": True}))


def test_a_call_that_the_client_left_breaks_nothing() -> None:
    """Half a stream is no broken stream when the client went."""
    half = sse({"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": []})
    exchange = answered(
        "openai-chat",
        half + b"data: {",
        media_type="text/event-stream",
        end=End.CANCELLED,
        request={"stream": True},
    )
    assert findings(exchange) == {}


def test_findings_quote_no_text() -> None:
    """What a model said is in no finding."""
    secret = "the model said this"
    choice = {"index": 5, "delta": {"content": secret}, "finish_reason": "stop"}
    late = {**choice, "finish_reason": None}
    chunk = {"id": "1", "object": "x", "model": "m", "choices": [choice, late]}
    found = findings(streamed("openai-chat", sse(chunk, secret)))
    assert found
    assert secret not in repr(found)


ENVELOPES = {
    Envelope.OPENAI: {"error": {"message": "m", "type": "t", "param": None, "code": None}},
    Envelope.OPENAI_INT_CODE: {"error": {"message": "m", "type": "t", "code": 400}},
    Envelope.FLAT: {"message": "m", "type": "t", "code": 400},
    Envelope.ERROR_STRING: {"error": "m"},
    Envelope.DETAIL: {"detail": [{"loc": []}]},
}


@pytest.mark.parametrize("stated", ENVELOPES)
@pytest.mark.parametrize("sent", ENVELOPES)
def test_envelopes(stated: Envelope, sent: Envelope) -> None:
    """Each is itself and no other."""
    body = json.dumps(ENVELOPES[sent]).encode()
    problem = envelope_problem(answered("openai-chat", body, status=400), stated)
    assert (problem is None) == (stated is sent)


def test_an_error_in_text() -> None:
    """Where the profile says so, any text is an error, and an empty one is none."""
    said = answered("openai-chat", b"Internal Server Error", status=500)
    assert envelope_problem(said, Envelope.TEXT) is None
    assert envelope_problem(answered("openai-chat", b"", status=500), Envelope.TEXT)
