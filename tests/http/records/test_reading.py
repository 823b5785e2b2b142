from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conformance.http.exchange import Chunk, End, Ending, Exchange, Headers, Request
from conformance.records.reading import read
from conformance.records.record import Finish, ProviderTiming, Usage
from conformance.runtimes.profile import Effect, Framing, Route, Terminator

SSE: Headers = (("content-type", "text/event-stream"),)
NDJSON: Headers = (("content-type", "application/x-ndjson"),)
JSON: Headers = (("content-type", "application/json"),)
ROUTE = Route("r", "POST", "/", Effect.INFERENCE, stream=Framing.SSE)
DONE = replace(ROUTE, terminator=Terminator("sse-data", ("[DONE]",)))
NAMED = replace(ROUTE, terminator=Terminator("event", ("response.completed", "chat.end")))
LINES = replace(ROUTE, terminator=Terminator("json-field", ("done",)))


def _exchange(headers: Headers, body: bytes) -> Exchange:
    chunks = (Chunk(0.1, body),)
    ending = Ending(0.2, End.COMPLETE)
    return Exchange("r", "", Request("POST", "/"), ending, 200, "HTTP/1.1", headers, 0.1, chunks)


def _events(*values: Any, names: tuple[str, ...] = ()) -> bytes:
    lines = []
    for number, value in enumerate(values):
        name = f"event: {names[number]}\n" if names else ""
        data = value if isinstance(value, str) else json.dumps(value)
        lines.append(f"{name}data: {data}\n\n")
    return "".join(lines).encode()


def _lines(*values: Any) -> bytes:
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


def test_openai_stream() -> None:
    """The extra chunk has the counts, the last choice the reason, [DONE] the end."""
    body = _events(
        {"model": "m", "choices": [{"delta": {"content": "x"}, "finish_reason": None}]},
        {"model": "m", "choices": [{"delta": {}, "finish_reason": "length"}]},
        {
            "choices": [],
            "usage": {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}},
        },
        "[DONE]",
    )
    found = read(_exchange(SSE, body), DONE, stream=True)
    assert (found.terminator, found.finish, found.model) == (True, Finish.LENGTH, "m")
    assert found.usage == Usage(prompt=3, completion=None, total=None, cached=2)
    assert (found.framed, found.schema, found.error) == (True, True, False)


def test_llama_timings() -> None:
    """Milliseconds of llama.cpp become microseconds."""
    body = _events({"choices": [], "timings": {"prompt_ms": 1.5, "predicted_ms": 2}}, "[DONE]")
    found = read(_exchange(SSE, body), DONE, stream=True)
    assert found.timing == ProviderTiming(prompt=1500, completion=2000)


def test_ollama_counts_only_at_the_end() -> None:
    """Zero-filled counts before the last line are no counts."""
    body = _lines(
        {"done": False, "prompt_eval_count": 0, "eval_count": 0, "message": {"content": "x"}},
        {"done": True, "done_reason": "stop", "eval_count": 5, "total_duration": 3_000_000},
    )
    found = read(_exchange(NDJSON, body), LINES, stream=True)
    assert (found.terminator, found.finish) == (True, Finish.STOP)
    assert found.usage == Usage(completion=5)
    assert found.timing == ProviderTiming(total=3000)


def test_ollama_error_line() -> None:
    """An error line ends the stream without its terminator."""
    body = _lines({"done": False}, {"error": "out of memory"})
    found = read(_exchange(NDJSON, body), LINES, stream=True)
    assert (found.terminator, found.error) == (False, True)


def test_responses_events() -> None:
    """A named event ends the stream; counts and reason are in the response that it holds."""
    response = {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "usage": {"input_tokens": 4, "output_tokens": 8, "total_tokens": 12},
        "error": None,
    }
    body = _events(
        {"type": "response.created", "response": {"status": "in_progress"}},
        {"type": "response.completed", "response": response},
        names=("response.created", "response.completed"),
    )
    found = read(_exchange(SSE, body), NAMED, stream=True)
    assert (found.terminator, found.error, found.finish) == (True, False, Finish.LENGTH)
    assert found.usage == Usage(prompt=4, completion=8, total=12)


def test_tgi_details() -> None:
    """TGI's last event says how much and why; there is no terminator to see."""
    body = _events(
        {"details": None}, {"details": {"finish_reason": "eos_token", "generated_tokens": 2}}
    )
    found = read(_exchange(SSE, body), ROUTE, stream=True)
    assert (found.terminator, found.finish) == (None, Finish.STOP)
    assert found.usage == Usage(completion=2)


def test_lmstudio_stats() -> None:
    """LM Studio's result has counts and no reason."""
    result = {"result": {"stats": {"input_tokens": 3, "total_output_tokens": 4}}}
    body = _events({"type": "chat.start"}, result, names=("chat.start", "chat.end"))
    found = read(_exchange(SSE, body), NAMED, stream=True)
    assert (found.terminator, found.finish) == (True, None)
    assert found.usage == Usage(prompt=3, completion=4)


@pytest.mark.parametrize("count", [-1, 1.5, True, "7", None, 2**40])
def test_what_is_no_count(count: Any) -> None:
    """A count that is none is null, and never 0."""
    body = json.dumps({"usage": {"completion_tokens": count}}).encode()
    assert read(_exchange(JSON, body), ROUTE, stream=False).usage == Usage()


@pytest.mark.parametrize("reason", ["a reason that quotes the prompt", 5, {"x": 1}, []])
def test_an_unknown_reason(reason: Any) -> None:
    """A reason outside the vocabulary is `other`, and not copied."""
    body = json.dumps({"choices": [{"finish_reason": reason}]}).encode()
    assert read(_exchange(JSON, body), ROUTE, stream=False).finish is Finish.OTHER


def test_times_without_sense() -> None:
    """Times that no call takes are none."""
    body = json.dumps({"total_duration": 10**400, "eval_duration": -1}).encode()
    assert read(_exchange(JSON, body), ROUTE, stream=False).timing is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    *("choices", "usage", "response", "details", "timings", "status", "done"),
                    *("finish_reason", "incomplete_details", "prompt_tokens_details", "error"),
                    *("type", "model", "result", "stats"),
                )
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_JSON, st.sampled_from([SSE, NDJSON, JSON]), st.booleans())
@example(value={"type": []}, headers=SSE, stream=True)
def test_any_json(value: Any, headers: Headers, stream: bool) -> None:
    """Whatever JSON comes, in whichever framing, it is read without an error."""
    body = _events(value, "[DONE]") if headers == SSE else _lines(value)
    for route in (ROUTE, DONE, NAMED, LINES):
        read(_exchange(headers, body), route, stream=stream)


@given(st.binary(max_size=100), st.sampled_from([SSE, NDJSON, JSON]))
def test_any_bytes(body: bytes, headers: Headers) -> None:
    """Nor do bytes that are no JSON at all."""
    for stream in (True, False):
        read(_exchange(headers, body), DONE, stream=stream)
