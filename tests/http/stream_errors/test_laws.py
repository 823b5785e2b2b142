"""An error inside a stream: what a right server may send, and everything that it may not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from conformance.http.exchange import Chunk, End, Ending, Exchange, Request
from conformance.laws.http import judge_exchange
from conformance.laws.law import Finding
from conformance.mutants.http.native.matrix import native_profile
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Terminator
from tests.http.laws import DECLARED, sse, streamed

OPENAI: dict[str, Any] = {
    "error": {"message": "it broke", "type": "server_error", "param": None, "code": None}
}
CHUNK: dict[str, Any] = {
    "id": "1",
    "object": "chat.completion.chunk",
    "model": "m",
    "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}],
}
ERROR: dict[str, Any] = {
    "type": "error",
    "code": "server_error",
    "message": "it broke",
    "param": None,
}
NATIVE = HttpDeclared(native_profile(), "scripted", scripted=True)


def failed(why: dict[str, str] | None) -> dict[str, Any]:
    return {"type": "response.failed", "response": {"status": "failed", "error": why}}


def chat(*messages: object, declared: HttpDeclared = DECLARED) -> object:
    """What the row of Chat Completions says of a stream of these messages."""
    exchange = streamed("openai-chat", sse(*messages))
    return judge_exchange(exchange, declared)["OE-HTTP-CHAT-035"]


def stated(after_error: str) -> HttpDeclared:
    """The fixture with another word of what follows an error."""
    runtime = DECLARED.runtime
    routes = tuple(
        replace(each, terminator=Terminator("sse-data", ("[DONE]",), after_error))
        if each.contract == "openai-chat"
        else each
        for each in runtime.routes
    )
    return replace(DECLARED, runtime=replace(runtime, routes=routes))


def native(contract: str, body: bytes, media_type: str) -> Exchange:
    """A stream of a native route."""
    route = next(
        each
        for each in native_profile().routes
        if each.contract == contract and each.terminator is not None
    )
    return Exchange(
        route.name,
        contract,
        Request(route.method, route.path, body=b'{"stream": true}'),
        Ending(0.2, End.COMPLETE),
        200,
        "HTTP/1.1",
        (("content-type", media_type),),
        0.1,
        (Chunk(0.1, body),),
    )


@pytest.mark.parametrize(
    ("after_error", "messages", "right"),
    [
        ("present", (CHUNK, OPENAI, "[DONE]"), True),
        ("present", (CHUNK, OPENAI), False),
        ("absent", (CHUNK, OPENAI), True),
        ("absent", (CHUNK, OPENAI, "[DONE]"), False),
        ("unknown", (CHUNK, OPENAI), True),
        ("unknown", (CHUNK, OPENAI, "[DONE]"), True),
        ("unknown", (CHUNK, OPENAI, "[DONE]", "[DONE]"), False),
        ("unknown", (CHUNK, OPENAI, CHUNK), False),
        ("present", (CHUNK, OPENAI, CHUNK, "[DONE]"), False),
        ("present", (CHUNK, OPENAI, OPENAI, "[DONE]"), False),
        ("present", (CHUNK, {"error": "it broke"}, "[DONE]"), False),
        ("present", (CHUNK, {"object": "error", "message": "it broke"}, "[DONE]"), False),
    ],
)
def test_the_end_after_an_error(
    after_error: str, messages: tuple[object, ...], right: bool
) -> None:
    """One error in its envelope, then what the profile says, then nothing."""
    ruling = chat(*messages, declared=stated(after_error))
    assert (ruling is True) == right
    assert isinstance(ruling, Finding) != right


def test_a_stream_without_an_error_is_not_judged() -> None:
    """Nor one whose chunks have the key `error`."""
    assert chat(CHUNK, "[DONE]") is None
    assert chat({**CHUNK, "error": None}, {**CHUNK, "error": "soft"}, "[DONE]") is None


@pytest.mark.parametrize("end", [End.CANCELLED, End.TRUNCATED, End.TIMEOUT_IDLE])
def test_a_stream_that_was_cut_off_is_not_judged(end: End) -> None:
    """What would have come after the error is open."""
    exchange = streamed("openai-chat", sse(CHUNK, OPENAI))
    cut = replace(exchange, ending=Ending(0.2, end))
    assert judge_exchange(cut, DECLARED)["OE-HTTP-CHAT-035"] is None


@pytest.mark.parametrize(
    ("error", "right"),
    [
        ({"error": "it broke"}, True),
        ({"error": {"message": "it broke"}}, True),
        ({"object": "error", "message": "it broke"}, True),
        ({"error": {"detail": 5}}, False),
    ],
)
def test_where_the_envelope_is_not_known_any_message_does(error: object, right: bool) -> None:
    """A profile that says nothing of it claims nothing."""
    runtime = DECLARED.runtime
    routes = tuple(replace(each, stream_envelope=None) for each in runtime.routes)
    declared = replace(DECLARED, runtime=replace(runtime, routes=routes))
    assert (chat(CHUNK, error, "[DONE]", declared=declared) is True) == right


@pytest.mark.parametrize(
    ("events", "right"),
    [
        ((ERROR, failed({"code": "server_error", "message": "it broke"})), True),
        ((failed({"code": "server_error", "message": "it broke"}),), True),
        ((failed(None),), False),
        ((failed({"code": "server_error"}),), False),
        ((ERROR,), False),
        ((ERROR, {"type": "response.completed", "response": {}}), False),
        (({"type": "error", "error": {"message": "it broke"}}, failed(None)), False),
    ],
)
def test_responses(events: tuple[dict[str, Any], ...], right: bool) -> None:
    """response.failed tells of the error itself, or follows the event that does."""
    created = {"type": "response.created", "response": {"id": "r", "error": None}}
    every = (created, *events)
    names = tuple(str(each["type"]) for each in every)
    exchange = streamed("openai-responses", sse(*every, names=names))
    ruling = judge_exchange(exchange, DECLARED)["OE-HTTP-RESP-020"]
    assert (ruling is True) == right


@pytest.mark.parametrize(
    ("lines", "right"),
    [
        (({"message": {}}, {"error": "it broke"}), True),
        (({"message": {}}, {"error": "it broke"}, {"done": True}), False),
        (({"message": {}}, {"error": {"message": "it broke"}}), False),
        (({"message": {}}, {"error": "it broke"}, {"message": {}}), False),
    ],
)
def test_ollama(lines: tuple[object, ...], right: bool) -> None:
    """The error is a text in the last line."""
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    exchange = native("ollama-native", body, "application/x-ndjson")
    assert (judge_exchange(exchange, NATIVE)["OE-HTTP-OLLAMA-015"] is True) == right


@pytest.mark.parametrize(
    ("messages", "right"),
    [
        (({"token": {}}, {"error": "it broke", "error_type": "generation"}), True),
        (({"token": {}}, {"error": "it broke"}), False),
        (({"token": {}}, {"error": "it broke", "error_type": "generation"}, "[DONE]"), False),
    ],
)
def test_tgi(messages: tuple[object, ...], right: bool) -> None:
    """The error has a type, and no terminator of another API follows it."""
    exchange = native("tgi-native", sse(*messages), "text/event-stream")
    assert (judge_exchange(exchange, NATIVE)["OE-HTTP-TGI-010"] is True) == right


@pytest.mark.parametrize(
    ("after", "right"),
    [
        (({"type": "chat.end", "result": {}},), True),
        ((), False),
        (({"type": "message.delta"}, {"type": "chat.end", "result": {}}), False),
    ],
)
def test_lm_studio(after: tuple[dict[str, Any], ...], right: bool) -> None:
    """chat.end follows, and nothing before it."""
    events = ({"type": "chat.start"}, {"type": "error", **OPENAI}, *after)
    names = tuple(str(each["type"]) for each in events)
    exchange = native("lmstudio-native", sse(*events, names=names), "text/event-stream")
    assert (judge_exchange(exchange, NATIVE)["OE-HTTP-LMS-009"] is True) == right


def test_findings_quote_no_error() -> None:
    """Servers put prompts into their errors."""
    secret = "the prompt was this"
    found = chat(CHUNK, {"error": secret}, {"error": secret}, "[DONE]")
    assert isinstance(found, Finding)
    assert secret not in repr(found)


def test_a_failed_response_breaks_no_other_rule() -> None:
    """It has no usage, its item stays open, and an error event is no end of its own kind."""
    response: dict[str, Any] = {
        "id": "r",
        "model": "m",
        "created_at": 1,
        "status": "in_progress",
        "error": None,
    }
    item: dict[str, Any] = {"output_index": 0, "item": {"id": "i", "type": "message"}}
    why = {"code": "server_error", "message": "it broke"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", **item},
        ERROR,
        {**failed(why), "response": {**response, "status": "failed", "error": why}},
    ]
    numbered = [{**each, "sequence_number": number} for number, each in enumerate(events)]
    names = tuple(str(each["type"]) for each in events)
    exchange = streamed("openai-responses", sse(*numbered, names=names))
    rulings = judge_exchange(exchange, DECLARED)
    assert {name: each for name, each in rulings.items() if isinstance(each, Finding)} == {}
