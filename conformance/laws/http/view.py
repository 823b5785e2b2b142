"""Streams and answers of the OpenAI text APIs as laws and checks look at them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

from conformance.http.exchange import Exchange
from conformance.http.sse import SseEvent, SseStream, parse_sse
from conformance.runtimes.usage import SSE

_DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the two APIs. piece: the text that a choice of a stream adds; whole:
    the text of a choice of an answer in one piece; both None where it has none.
    """

    contract: str
    unary: str
    chunk: str
    reasons: frozenset[str]
    piece: Callable[[dict[str, Any]], Any]
    whole: Callable[[dict[str, Any]], Any]


def _delta(choice: dict[str, Any]) -> Any:
    delta = choice.get("delta")
    return delta.get("content") if isinstance(delta, dict) else None


def _message(choice: dict[str, Any]) -> Any:
    message = choice.get("message")
    return message.get("content") if isinstance(message, dict) else None


CHAT = Dialect(
    "openai-chat",
    "chat.completion",
    "chat.completion.chunk",
    frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"}),
    _delta,
    _message,
)
COMPLETIONS = Dialect(
    "openai-completions",
    "text_completion",
    "text_completion",
    frozenset({"stop", "length", "content_filter"}),
    lambda choice: choice.get("text"),
    lambda choice: choice.get("text"),
)


@dataclass(frozen=True, slots=True)
class Message:
    """A JSON object of a stream. number: of its event, for findings."""

    number: int
    value: dict[str, Any]

    @property
    def choices(self) -> list[dict[str, Any]]:
        """Its choices that are objects."""
        return choices_of(self.value)

    @property
    def is_error(self) -> bool:
        """Whether it tells of an error instead of carrying a part of the answer."""
        return "choices" not in self.value and (
            "error" in self.value or self.value.get("object") == "error"
        )


@dataclass(frozen=True, slots=True)
class Stream:
    """A parsed stream. done: numbers of the events that are [DONE]."""

    sse: SseStream
    messages: tuple[Message, ...]
    done: tuple[int, ...]

    @property
    def failed(self) -> bool:
        """Whether an error stands in the stream."""
        return any(message.is_error for message in self.messages)

    def of(self, index: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number of the event and choice, for each message about this choice."""
        for message in self.messages:
            for choice in message.choices:
                if choice.get("index") == index:
                    yield message.number, choice

    @property
    def indices(self) -> tuple[int, ...]:
        """Indices of the choices, each once, in the order of their first message."""
        found = [c.get("index") for message in self.messages for c in message.choices]
        return tuple(dict.fromkeys(filter(is_count, found)))

    def text(self, dialect: Dialect, index: int = 0) -> str:
        """The text of a choice."""
        pieces = (dialect.piece(choice) for _, choice in self.of(index))
        return "".join(piece for piece in pieces if isinstance(piece, str))

    def finish(self, index: int = 0) -> Any:
        """The finish_reason of a choice; None when it has none."""
        reasons = (choice.get("finish_reason") for _, choice in self.of(index))
        return next((reason for reason in reasons if reason is not None), None)

    @property
    def usages(self) -> tuple[tuple[int, dict[str, Any]], ...]:
        """Number of the event and usage, where a message carries one."""
        return tuple(
            (message.number, message.value["usage"])
            for message in self.messages
            if isinstance(message.value.get("usage"), dict)
        )


def stream_of(exchange: Exchange) -> Stream | None:
    """The stream of a successful answer; None when it is none."""
    return _stream(exchange.body) if is_event_stream(exchange) else None


def is_event_stream(exchange: Exchange) -> bool:
    """Whether the body is one, or was asked for as one and is no JSON; that its content type says
    so is a rule of its own.
    """
    if exchange.status != 200:
        return False
    media_type = exchange.media_type
    return media_type == SSE or (streaming(exchange) and media_type != "application/json")


@lru_cache(maxsize=64)
def _stream(body: bytes) -> Stream:
    sse = parse_sse(body)
    messages = tuple(Message(number, value) for number, _, value in objects_in(sse))
    return Stream(sse, messages, done_in(sse))


def objects_in(sse: SseStream) -> Iterator[tuple[int, SseEvent, dict[str, Any]]]:
    """Number, event and JSON object of each event that carries one."""
    for number, event in enumerate(sse.events):
        if (value := event.fields) is not None:
            yield number, event, value


def done_in(sse: SseStream) -> tuple[int, ...]:
    """Numbers of the events that are [DONE]."""
    return tuple(n for n, event in enumerate(sse.events) if event.data.strip() == _DONE)


def answer_of(exchange: Exchange) -> dict[str, Any] | None:
    """The JSON object of a successful answer in one piece; None when it is none."""
    if not exchange.ok or exchange.request.method != "POST" or is_event_stream(exchange):
        return None
    return exchange.json if isinstance(exchange.json, dict) else None


def choices_of(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The choices of an answer or a message that are objects."""
    choices = value.get("choices")
    return [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []


def streaming(exchange: Exchange) -> bool:
    """Whether a stream was asked for."""
    request = exchange.request.json
    return isinstance(request, dict) and request.get("stream") is True


def undisturbed(exchange: Exchange) -> bool:
    """Whether the server ended the answer; laws about whole answers hold only then."""
    return exchange.whole and exchange.cancelled is None


def one_of(value: object, known: Container[str]) -> bool:
    """Whether the value is one of these words; a server may send a list in their place."""
    return isinstance(value, str) and value in known


def is_count(value: object) -> TypeGuard[int]:
    """Whether the value is a whole number of at least 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
