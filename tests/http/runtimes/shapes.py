"""Servers that cannot run here, as their source and documentation describe them: the right server
with the routes, errors and extra fields of each. What a shape leaves out is what OpenAI does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.mutants.http import chat, completions, observing, responses
from conformance.mutants.http.ask import Ask
from conformance.mutants.http.mutant import Change, HttpMutant
from conformance.mutants.http.native import lmstudio, ollama, tgi
from conformance.mutants.http.reply import Event, Reply
from conformance.mutants.http.server import ROUTES, Answer

Json = dict[str, Any]
Envelope = Callable[[int, Json], Json]
TEXT = (chat.PATH, completions.PATH)


def int_code(status: int, error: Json) -> Json:
    """Nested, and the code is the status."""
    return {"error": error | {"code": status}}


def flat(status: int, error: Json) -> Json:
    """Nothing is nested."""
    return {"object": "error", **error, "code": status}


def openai(status: int, error: Json) -> Json:
    """As the right server has it."""
    return {"error": error}


def typed(status: int, error: Json) -> Json:
    """A text, and a type beside it."""
    return {"error": error["message"], "error_type": "validation"}


@dataclass(frozen=True, slots=True)
class Shape:
    """One server. envelope: of its errors, and another one on some paths; in_stream: of those
    inside a stream. choices: fields of its own. on_ask: options that it does not have.
    """

    name: str
    envelope: Envelope = openai
    others: Mapping[str, Envelope] = field(default_factory=dict)
    in_stream: Envelope = openai
    choices: Mapping[str, Any] = field(default_factory=dict)
    routes: Mapping[tuple[str, str], Answer] = field(default_factory=dict)
    on_ask: Callable[[Ask], None] | None = None
    events: Change | None = None
    conditions: tuple[str, ...] = ()

    @property
    def all_routes(self) -> Mapping[tuple[str, str], Answer]:
        """The right server's routes for text, and its own."""
        text = {key: answer for key, answer in ROUTES.items() if key[1].startswith("/v1/")}
        return {**text, **self.routes}

    @property
    def faulty(self) -> HttpMutant:
        """The shape as a change of the right server."""
        return HttpMutant(self.name, "", "", on_ask=self.on_ask, on_reply=self._reshaped)

    def _reshaped(self, ask: Ask, reply: Reply) -> None:
        if isinstance(reply.body, dict):
            self._whole(ask, reply)
        if reply.events is not None and ask.path in TEXT:
            reply.events = self._stream(reply.events)
            if self.events is not None:
                self.events(ask, reply)

    def _whole(self, ask: Ask, reply: Reply) -> None:
        error = reply.body.get("error")
        if reply.status >= 400 and isinstance(error, dict):
            envelope = self.others.get(ask.path, self.envelope)
            reply.body = envelope(reply.status, error)
        for choice in reply.body.get("choices", ()):
            choice.update(self.choices)

    def _stream(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event.data, dict) and "error" in event.data:
                event.data = self.in_stream(500, event.data["error"])
            elif isinstance(event.data, dict):
                for choice in event.data["choices"]:
                    choice.update(self.choices)
            yield event


def _says(body: Any) -> Answer:
    return lambda _: Reply(body=body)


def _drained(ask: Ask) -> Reply:
    """Statistics that reading takes away."""
    first = not ask.state.get("read")
    ask.state["read"] = True
    return Reply(body='[{"iter": 1}]' if first else "[]")


def _one_choice(ask: Ask) -> None:
    if ask.json is not None and ask.path in TEXT:
        ask.json.pop("n", None)


def _zero_usage(ask: Ask, reply: Reply) -> None:
    """Every message of a stream that asks for usage has zeros until the last."""
    if ask.path == completions.PATH and ask.usage_wanted and reply.events is not None:
        reply.events = map(_with_zeros, reply.events)


def _with_zeros(event: Event) -> Event:
    if isinstance(event.data, dict) and event.data.get("choices"):
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        event.data["usage"] = dict.fromkeys(names, 0)
    return event


_EMPTY = _says(None)
_METRICS = observing.metrics
SHAPES = (
    Shape(
        "vllm@0.26.0",
        int_code,
        in_stream=int_code,
        choices={"stop_reason": None, "token_ids": None},
        routes={
            ("GET", "/health"): _EMPTY,
            ("GET", "/ping"): _EMPTY,
            ("GET", "/version"): _says({"version": "0.26.0"}),
            ("GET", "/load"): _says({"server_load": 0}),
            ("GET", "/metrics"): _METRICS,
        },
    ),
    Shape(
        "sglang@0.5.16",
        flat,
        others={responses.PATH: int_code},
        in_stream=int_code,
        choices={"matched_stop": None},
        routes={
            ("GET", "/health"): observing.canary,
            ("GET", "/health_generate"): observing.canary,
            ("GET", "/model_info"): _says({"model_path": "scripted"}),
            ("GET", "/server_info"): _says({"version": "0.5.16"}),
            ("GET", "/get_load"): _says([{"num_reqs": 0}]),
            ("GET", "/metrics"): _METRICS,
        },
        conditions=("metrics-flag",),
    ),
    Shape(
        "tensorrt-llm@1.2.1",
        flat,
        in_stream=flat,
        choices={"stop_reason": None, "disaggregated_params": None},
        routes={
            ("GET", "/health"): _EMPTY,
            ("GET", "/health_generate"): observing.canary,
            ("GET", "/version"): _says({"version": "1.2.1"}),
            ("GET", "/server_info"): _says({"disaggregated_params": {}}),
            ("GET", "/metrics"): _drained,
            ("GET", "/perf_metrics"): _drained,
            ("GET", "/prometheus/metrics"): _METRICS,
        },
        conditions=("perf-metrics-flag",),
    ),
    Shape(
        "ollama@0.32.5",
        routes={
            ("GET", "/api/version"): _says({"version": "0.32.5"}),
            ("GET", "/api/tags"): _says({"models": [{"name": "scripted"}]}),
            ("GET", "/api/ps"): _says({"models": []}),
            ("POST", ollama.CHAT): ollama.chat,
            ("POST", ollama.GENERATE): ollama.generate,
        },
        on_ask=_one_choice,
        events=_zero_usage,
    ),
    Shape(
        "tgi@3.3.7",
        typed,
        routes={
            ("GET", "/info"): _says({"version": "3.3.7", "model_id": "scripted"}),
            ("GET", "/health"): _EMPTY,
            ("GET", "/metrics"): _METRICS,
            ("POST", tgi.WHOLE): tgi.generate,
            ("POST", tgi.STREAM): tgi.generate_stream,
        },
    ),
    Shape(
        "lm-studio@0.4.1",
        routes={
            ("GET", "/api/v1/models"): _says({"models": [{"key": "scripted"}]}),
            ("POST", lmstudio.PATH): lmstudio.chat,
        },
    ),
)
