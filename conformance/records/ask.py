"""The one request of a smoke call, in the words of each API: a few tokens, greedy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from conformance.http.exchange import Request
from conformance.runtimes.profile import Route

PROMPT = "Answer with the one word: ready"
MAX_TOKENS = 8

Body = Callable[[str, bool], dict[str, Any]]
_MESSAGES = [{"role": "user", "content": PROMPT}]


def _chat(model: str, stream: bool) -> dict[str, Any]:
    return _openai(model, stream, messages=_MESSAGES)


def _completions(model: str, stream: bool) -> dict[str, Any]:
    return _openai(model, stream, prompt=PROMPT)


def _openai(model: str, stream: bool, **asked: Any) -> dict[str, Any]:
    streamed: dict[str, Any] = {"stream": True} if stream else {}
    return {"model": model, **asked, "max_tokens": MAX_TOKENS, "temperature": 0, **streamed}


def _responses(model: str, stream: bool) -> dict[str, Any]:
    # Without store the server keeps nothing of the call.
    asked = {"model": model, "input": PROMPT, "max_output_tokens": MAX_TOKENS, "store": False}
    return asked | ({"stream": True} if stream else {})


def _ollama(model: str, stream: bool, **asked: Any) -> dict[str, Any]:
    options = {"num_predict": MAX_TOKENS, "temperature": 0}
    return {"model": model, **asked, "stream": stream, "options": options}


def _ollama_chat(model: str, stream: bool) -> dict[str, Any]:
    return _ollama(model, stream, messages=_MESSAGES)


def _ollama_generate(model: str, stream: bool) -> dict[str, Any]:
    return _ollama(model, stream, prompt=PROMPT)


def _tgi(model: str, stream: bool) -> dict[str, Any]:  # noqa: ARG001 - one model a server
    return {"inputs": PROMPT, "parameters": {"max_new_tokens": MAX_TOKENS, "details": True}}


def _lmstudio(model: str, stream: bool) -> dict[str, Any]:
    asked = {"model": model, "input": PROMPT, "max_output_tokens": MAX_TOKENS, "store": False}
    return asked | {"stream": stream, "temperature": 0}


# By contract, or by contract and path where one contract has several requests.
_BODIES: Mapping[str, Body] = {
    "openai-chat": _chat,
    "openai-completions": _completions,
    "openai-responses": _responses,
    "ollama-native /api/chat": _ollama_chat,
    "ollama-native /api/generate": _ollama_generate,
    "tgi-native": _tgi,
    "lmstudio-native": _lmstudio,
}


def body_for(route: Route) -> Body | None:
    """Makes the request's body for a route; None when its contract is not known here."""
    return _BODIES.get(route.contract) or _BODIES.get(f"{route.contract} {route.path}")


def wants_usage(route: Route, *, stream: bool) -> bool:
    """Whether the request asks for usage, because the route gives it to a stream only then."""
    return stream and route.usage is not None and route.usage.when == "include_usage"


def request_for(route: Route, body: Body, model: str, *, stream: bool) -> Request:
    """The whole request."""
    fields = body(model, stream)
    if wants_usage(route, stream=stream):
        fields["stream_options"] = {"include_usage": True}
    data = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    return Request(route.method, route.path, (("content-type", "application/json"),), data)
