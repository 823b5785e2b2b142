"""What a response says about itself, in whichever API's words: the end, the reason, the counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.http.exchange import Exchange
from conformance.http.json_text import JsonFault, parse_json
from conformance.http.ndjson import parse_ndjson
from conformance.http.sse import SseEvent, parse_sse
from conformance.records.record import (
    MOST_MICROSECONDS,
    MOST_TOKENS,
    Finish,
    ProviderTiming,
    Usage,
)
from conformance.runtimes.profile import Route, Terminator
from conformance.runtimes.usage import NDJSON, SSE

_FINISH = {
    **dict.fromkeys(("stop", "eos_token", "stop_sequence", "completed", "unload"), Finish.STOP),
    **dict.fromkeys(("length", "max_output_tokens", "max_tokens"), Finish.LENGTH),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), Finish.TOOL),
    "content_filter": Finish.FILTER,
    **dict.fromkeys(("abort", "cancelled"), Finish.ABORT),
}
# Where the counts and reasons of an answer may stand, below the answer itself.
_INNER = ("response", "result", "details", "stats")
_DEPTH = 2
# More than any time in any unit, and still a float.
_MOST_FLOAT = 1e18


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of a response. start, end: its bytes in the body. data: JSON, or None when the
    message is none; text: as it came; event: the name of a named event.
    """

    start: int
    end: int
    text: str
    data: Any = None
    event: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found in a response. schema: every frame is what the framing promises. error: an
    error came inside a stream. model: the model that the provider named, None when it named none.
    """

    frames: tuple[Frame, ...]
    framed: bool
    schema: bool
    terminator: bool | None
    error: bool
    finish: Finish | None
    usage: Usage
    timing: ProviderTiming | None
    model: str | None


def read(exchange: Exchange, route: Route, *, stream: bool) -> Reading:
    """Read the response of a route. Nothing here raises, whatever the body holds."""
    frames, framed = _frames(exchange, stream=stream)
    ended = _ended(frames, route.terminator) if stream else None
    messages = [frame for frame in frames if not _is_terminator(frame, route.terminator)]
    objects = [frame.data for frame in messages if isinstance(frame.data, dict)]
    # Counts before the end are no counts: some servers fill them with zeros.
    final = [value for value in objects if value.get("done") is not False]
    return Reading(
        frames=frames,
        framed=framed,
        schema=len(objects) == len(messages) and bool(objects),
        terminator=ended,
        error=any(_is_error(frame) for frame in messages) if stream else False,
        finish=_last(_finish(value) for value in _nested(final)),
        usage=_usage(list(_nested(final))),
        timing=_timing(final),
        model=_last(_text(value.get("model")) for value in _nested(objects)),
    )


def _frames(exchange: Exchange, *, stream: bool) -> tuple[tuple[Frame, ...], bool]:
    body = exchange.body
    if stream and exchange.media_type == SSE:
        parsed = parse_sse(body)
        frames = tuple(
            Frame(event.start, event.end, event.data, _value(event), event.name)
            for event in parsed.events
        )
        return frames, not parsed.faults and not parsed.unfinished
    if stream and exchange.media_type == NDJSON:
        lines = parse_ndjson(body)
        found = tuple(Frame(line.start, line.end, "", line.value) for line in lines.lines)
        return found, not lines.faults and not lines.unfinished
    value = parse_json(body)
    if stream or isinstance(value, JsonFault):
        return (), False
    return (Frame(0, len(body), "", value),), True


def _value(event: SseEvent) -> Any:
    value = event.value
    return None if isinstance(value, JsonFault) else value


def _ended(frames: tuple[Frame, ...], terminator: Terminator | None) -> bool | None:
    if terminator is None or terminator.kind == "none":
        return None
    return bool(frames) and _is_terminator(frames[-1], terminator, counted=True)


def _is_terminator(frame: Frame, terminator: Terminator | None, *, counted: bool = False) -> bool:
    """Whether a frame ends the stream and says nothing else; with `counted`, ends it at all."""
    if terminator is None:
        return False
    if terminator.kind == "sse-data":
        return frame.text in terminator.values
    if not counted:
        return False
    data = frame.data if isinstance(frame.data, dict) else {}
    if terminator.kind == "event":
        return (frame.event or data.get("type")) in terminator.values
    return any(data.get(name) not in (None, False) for name in terminator.values)


def _is_error(frame: Frame) -> bool:
    data = frame.data if isinstance(frame.data, dict) else {}
    # A type may be any JSON value, so it is compared and not looked up.
    named = any(kind in ("error", "response.failed") for kind in (frame.event, data.get("type")))
    return named or data.get("error") is not None


def _nested(objects: list[dict[str, Any]], depth: int = _DEPTH) -> Iterator[dict[str, Any]]:
    for value in objects:
        yield value
        inner = [each for name in _INNER if isinstance(each := value.get(name), dict)]
        if depth:
            yield from _nested(inner, depth - 1)


def _finish(value: Mapping[str, Any]) -> Finish | None:
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        value = choices[0]
    incomplete = value.get("incomplete_details")
    if isinstance(incomplete, dict):
        return _word(incomplete.get("reason"))
    for name in ("finish_reason", "done_reason"):
        if value.get(name) is not None:
            return _word(value[name])
    return Finish.STOP if value.get("status") == "completed" else None


def _word(reason: object) -> Finish:
    return _FINISH.get(reason, Finish.OTHER) if isinstance(reason, str) else Finish.OTHER


def _usage(objects: list[dict[str, Any]]) -> Usage:
    found: dict[str, int | None] = {}
    for value in objects:
        usage = value.get("usage")
        holders = [value, usage] if isinstance(usage, dict) else [value]
        for holder in holders:
            for name, number in _counts(holder).items():
                found[name] = number if number is not None else found.get(name)
    return Usage(**found)


def _counts(holder: Mapping[str, Any]) -> dict[str, int | None]:
    def first(*names: str) -> int | None:
        return next((n for name in names if (n := _count(holder.get(name))) is not None), None)

    cached = None
    for name in ("prompt_tokens_details", "input_tokens_details"):
        details = holder.get(name)
        if isinstance(details, dict):
            cached = _count(details.get("cached_tokens"))
    return {
        "prompt": first("prompt_tokens", "input_tokens", "prompt_eval_count", "input_length"),
        "completion": first(
            "completion_tokens",
            "output_tokens",
            "eval_count",
            "generated_tokens",
            "total_output_tokens",
        ),
        "total": first("total_tokens"),
        "cached": cached,
    }


def _timing(objects: list[dict[str, Any]]) -> ProviderTiming | None:
    for value in reversed(objects):
        timings = value.get("timings")
        if isinstance(timings, dict):  # milliseconds
            prompt, completion = timings.get("prompt_ms"), timings.get("predicted_ms")
            return _provider(None, _micro(prompt, 1e3), _micro(completion, 1e3), None)
        if "total_duration" in value:  # nanoseconds
            names = ("load", "prompt_eval", "eval", "total")
            return _provider(*(_micro(value.get(f"{name}_duration"), 1e-3) for name in names))
    return None


def _provider(
    load: int | None, prompt: int | None, completion: int | None, total: int | None
) -> ProviderTiming | None:
    timing = ProviderTiming(load, prompt, completion, total)
    return None if timing == ProviderTiming() else timing


def _micro(value: object, factor: float) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= _MOST_FLOAT or value * factor > MOST_MICROSECONDS:
        return None
    return int(value * factor)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MOST_TOKENS else None


def _last(values: Iterator[Any]) -> Any:
    found = None
    for value in values:
        found = value if value is not None else found
    return found
