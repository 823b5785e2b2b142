"""The rules that Chat Completions and Completions share; each API gives them its own ids."""

from __future__ import annotations

from typing import Any

from conformance.http.exchange import Exchange
from conformance.laws.http.law import Finding, Ruling
from conformance.laws.http.view import (
    Dialect,
    Stream,
    answer_of,
    choices_of,
    is_count,
    one_of,
    stream_of,
    undisturbed,
)

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


def unary_shape(exchange: Exchange, dialect: Dialect) -> Ruling:
    """The object that an answer in one piece is."""
    value = answer_of(exchange)
    if value is None:
        return None
    if value.get("object") != dialect.unary:
        return Finding(f"object {dialect.unary}", _short(value.get("object")))
    for name in ("id", "model"):
        if not isinstance(value.get(name), str) or not value[name]:
            return Finding(f"a non-empty {name}", _short(value.get(name)))
    if not is_count(value.get("created")):
        return Finding("created as whole seconds", _short(value.get("created")))
    choices = choices_of(value)
    found = [choice.get("index") for choice in choices]
    if not choices or found != list(range(len(choices))):
        return Finding("choices with indices from 0", f"the indices {_short(found)}")
    return True


def chunk_shape(exchange: Exchange, dialect: Dialect) -> Ruling:
    """The objects that the messages of a stream are."""
    stream = stream_of(exchange)
    if stream is None or not stream.messages:
        return None
    ids: set[Any] = set()
    models: set[Any] = set()
    for message in stream.messages:
        value = message.value
        if message.is_error:
            continue
        if value.get("object") != dialect.chunk:
            seen = _short(value.get("object"))
            return Finding(f"object {dialect.chunk}", seen, message.number)
        if not isinstance(value.get("id"), str) or not value["id"]:
            return Finding("a non-empty id", _short(value.get("id")), message.number)
        if not isinstance(value.get("choices"), list):
            return Finding("a list of choices", _short(value.get("choices")), message.number)
        ids.add(value["id"])
        models.add(_hashable(value.get("model")))
    if len(ids) > 1 or len(models) > 1:
        return Finding("one id and one model", f"{len(ids)} ids and {len(models)} models")
    return True


def finish_key(exchange: Exchange, dialect: Dialect) -> Ruling:  # noqa: ARG001
    """The key finish_reason: always there, null until the end, a reason once."""
    stream = stream_of(exchange)
    if stream is None or not stream.indices:
        return None
    for index in stream.indices:
        reasons: list[int] = []
        for number, choice in stream.of(index):
            if "finish_reason" not in choice:
                return Finding("the key finish_reason in each choice", "none", number)
            if choice["finish_reason"] is not None:
                reasons.append(number)
        if len(reasons) > 1:
            return Finding("one finish_reason for each choice", f"{len(reasons)}", reasons[1])
        if not reasons and undisturbed(exchange) and not stream.failed:
            return Finding("a finish_reason for each choice", "none before the end")
    return True


def finish_value(exchange: Exchange, dialect: Dialect) -> Ruling:
    """The reasons that there are."""
    seen = False
    for number, choice in _all_choices(exchange):
        reason = choice.get("finish_reason")
        if reason is None:
            if number is None:
                return Finding("a finish_reason", "none")
            continue
        seen = True
        if not one_of(reason, dialect.reasons):
            return Finding(f"one of {', '.join(sorted(dialect.reasons))}", _short(reason), number)
    return True if seen else None


def after_finish(exchange: Exchange, dialect: Dialect) -> Ruling:
    """Nothing of a choice follows its end."""
    stream = stream_of(exchange)
    if stream is None:
        return None
    judged = False
    for index in stream.indices:
        ended = False
        for number, choice in stream.of(index):
            if ended and dialect.piece(choice):
                return Finding("no content after the finish_reason", "content", number)
            if choice.get("finish_reason") is not None:
                ended = judged = True
    return True if judged else None


def terminated(exchange: Exchange, dialect: Dialect) -> Ruling:  # noqa: ARG001
    """[DONE] once, and last."""
    stream = stream_of(exchange)
    if stream is None or not undisturbed(exchange) or stream.failed:
        return None
    if not stream.done:
        return Finding("[DONE] as the last event", "no [DONE]")
    if len(stream.done) > 1:
        return Finding("[DONE] once", f"{len(stream.done)} times", stream.done[1])
    last = len(stream.sse.events) - 1
    if stream.done[0] != last:
        after = last - stream.done[0]
        return Finding("[DONE] as the last event", f"{after} events after it", stream.done[0])
    return True


def usage_asked(exchange: Exchange, dialect: Dialect) -> Ruling:  # noqa: ARG001
    """With include_usage: one usage, in a message of its own, last of all."""
    stream = _ended(exchange)
    if stream is None or _include_usage(exchange) is not True:
        return None
    if len(stream.usages) != 1:
        return Finding("usage in exactly one message", f"in {len(stream.usages)}")
    number, usage = stream.usages[0]
    last = stream.messages[-1]
    if number != last.number:
        return Finding("usage in the last message", "in an earlier one", number)
    if last.value.get("choices") != []:
        return Finding("usage in a message with empty choices", "beside a choice", number)
    problem = usage_problem(usage)
    return True if problem is None else Finding("counts that add up", problem, number)


def usage_unasked(exchange: Exchange, dialect: Dialect) -> Ruling:  # noqa: ARG001
    """Without include_usage: none."""
    stream = _ended(exchange)
    if stream is None or _include_usage(exchange) is True:
        return None
    if stream.usages:
        where = "beside a choice" if _beside(stream, stream.usages[0][0]) else "without choices"
        return Finding("no usage in the stream", f"usage {where}", stream.usages[0][0])
    return True


def unary_usage(exchange: Exchange, dialect: Dialect) -> Ruling:  # noqa: ARG001
    """An answer in one piece tells what it cost."""
    value = answer_of(exchange)
    if value is None:
        return None
    usage = value.get("usage")
    problem = usage_problem(usage) if isinstance(usage, dict) else "no usage"
    return True if problem is None else Finding("counts that add up", problem)


def logprobs_unasked(exchange: Exchange, dialect: Dialect) -> Ruling:  # noqa: ARG001
    """No logprobs that nobody asked for."""
    request = exchange.request.json
    if not isinstance(request, dict) or request.get("logprobs") not in (None, False):
        return None
    judged = False
    for number, choice in _all_choices(exchange):
        judged = True
        if choice.get("logprobs") is not None:
            return Finding("no logprobs", "some", number)
    return True if judged else None


def announced(exchange: Exchange, dialect: Dialect) -> Ruling:  # noqa: ARG001
    """Indices are whole numbers below n, and an error is the last message."""
    stream = stream_of(exchange)
    if stream is None or not stream.messages:
        return None
    most = _most_choices(exchange.request.json)
    for message in stream.messages:
        for choice in message.choices:
            index = choice.get("index")
            if not is_count(index) or index >= most:
                return Finding(f"an index below {most}", _short(index), message.number)
        if message.is_error and message is not stream.messages[-1]:
            return Finding("nothing after an error but the terminator", "more", message.number)
    return True


def _most_choices(request: Any) -> int:
    """Choices that a request asks for: n for each of its prompts."""
    if not isinstance(request, dict):
        return 1
    n, prompt = request.get("n"), request.get("prompt")
    prompts = 1
    if isinstance(prompt, list) and all(isinstance(each, str) for each in prompt):
        prompts = len(prompt)
    return (n if is_count(n) else 1) * prompts


def usage_problem(usage: dict[str, Any]) -> str | None:
    """What is wrong with counts; None when nothing is."""
    for name in _COUNTS:
        if not is_count(usage.get(name)):
            return f"{name} is {_short(usage.get(name))}"
    prompt, completion, total = (usage[name] for name in _COUNTS)
    return None if prompt + completion == total else f"{prompt} + {completion} is not {total}"


def _all_choices(exchange: Exchange) -> list[tuple[int | None, dict[str, Any]]]:
    """Every choice of an answer, with the number of its event in a stream."""
    stream = stream_of(exchange)
    if stream is not None:
        return [(m.number, choice) for m in stream.messages for choice in m.choices]
    value = answer_of(exchange)
    return [] if value is None else [(None, choice) for choice in choices_of(value)]


def _ended(exchange: Exchange) -> Stream | None:
    """A stream that the server brought to its end without an error."""
    stream = stream_of(exchange)
    if stream is None or not undisturbed(exchange) or stream.failed or not stream.messages:
        return None
    return stream


def _include_usage(exchange: Exchange) -> Any:
    request = exchange.request.json
    options = request.get("stream_options") if isinstance(request, dict) else None
    return options.get("include_usage") if isinstance(options, dict) else None


def _beside(stream: Stream, number: int) -> bool:
    return any(message.number == number and message.choices for message in stream.messages)


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | None) else _short(value)


def _short(value: Any) -> str:
    """A value of the protocol (never of content) in a few characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
