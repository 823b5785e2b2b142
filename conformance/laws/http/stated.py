"""Laws that hold a stream against what the runtime's profile states of it."""

from __future__ import annotations

from conformance.http.exchange import Exchange
from conformance.http.sse import SseEvent, parse_sse
from conformance.laws.http.framing import route_of
from conformance.laws.http.law import Finding, Ruling, http_law
from conformance.laws.http.responses_view import response_stream
from conformance.laws.http.view import Stream, is_event_stream, stream_of, undisturbed
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Framing, Terminator, UsagePlace

_SSE = frozenset({Framing.SSE, Framing.SSE_NAMED})


@http_law("OE-HTTP-SSE-006")
def terminator(exchange: Exchange, declared: HttpDeclared) -> Ruling:
    """The last event is what the profile says."""
    route = route_of(exchange, declared)
    if route is None or route.stream not in _SSE or route.terminator is None:
        return None
    if not is_event_stream(exchange) or not undisturbed(exchange):
        return None
    events = parse_sse(exchange.body).events
    if not events:
        return None
    stated = route.terminator
    wanted = stated.kind != "none"
    if any(_is_error(event) for event in events):
        if stated.after_error == "unknown":
            return None
        wanted = stated.after_error == "present"
    found = _ends(events[-1], stated)
    if found == wanted:
        return True
    name = " or ".join(stated.values) or "a terminator"
    seen = "another event" if wanted else "it"
    return Finding(f"{name} as the last event" if wanted else f"no {name} at the end", seen)


def _ends(event: SseEvent, stated: Terminator) -> bool:
    """Whether an event is the terminator; where there is none, whether it is a usual one."""
    if stated.kind == "event":
        value = _object(event)
        return event.name in stated.values or value.get("type") in list(stated.values)
    return event.data.strip() in (stated.values or ("[DONE]",))


def _is_error(event: SseEvent) -> bool:
    value = _object(event)
    return event.name == "error" or ("error" in value and "choices" not in value)


def _object(event: SseEvent) -> dict[str, object]:
    # `error: null` stands in every response object.
    return {key: item for key, item in (event.fields or {}).items() if item is not None}


@http_law("OE-HTTP-SSE-007", "openai-chat", "openai-completions", "openai-responses")
def usage_place(exchange: Exchange, declared: HttpDeclared) -> Ruling:
    """Counts are where the profile says, and there only when it says."""
    route = route_of(exchange, declared)
    if route is None or route.usage is None or not undisturbed(exchange):
        return None
    if not is_event_stream(exchange):
        return None
    if route.stream is Framing.SSE_NAMED:
        return _terminal(exchange, route.usage)
    stream = stream_of(exchange)
    if stream is None or stream.failed or not stream.messages:
        return None
    wanted = _wanted(exchange, route.usage)
    found = _place(stream)
    if found == wanted:
        return True
    return Finding(f"usage: {wanted}", f"usage: {found}")


def _wanted(exchange: Exchange, stated: UsagePlace) -> str:
    request = exchange.request.json
    options = request.get("stream_options") if isinstance(request, dict) else None
    asked = isinstance(options, dict) and options.get("include_usage") is True
    given = stated.when == "always" or (stated.when == "include_usage" and asked)
    return stated.where if given else "absent"


def _place(stream: Stream) -> str:
    """Where the counts of a stream are, in the words of the profiles."""
    numbers = {number for number, _ in stream.usages}
    if not numbers:
        return "absent"
    last = stream.messages[-1]
    if numbers == {last.number}:
        return "last-chunk" if last.choices else "extra-chunk"
    every = {message.number for message in stream.messages}
    return "every-chunk" if numbers == every else f"{len(numbers)} messages"


def _terminal(exchange: Exchange, stated: UsagePlace) -> Ruling:
    stream = response_stream(exchange)
    last = None if stream is None else stream.last
    if stream is None or last is None or stated.where != "terminal" or stream.failed:
        return None
    if isinstance(last.response.get("usage"), dict):
        return True
    return Finding("usage in the last event", "none", last.number)


LAWS = (terminator, usage_place)
