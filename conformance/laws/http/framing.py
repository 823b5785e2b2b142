"""Laws about how responses and streams are framed, whatever API they belong to."""

from __future__ import annotations

from conformance.http.exchange import End, Exchange
from conformance.http.json_text import JsonFault
from conformance.http.sse import parse_sse
from conformance.laws.http.law import Finding, Ruling, http_law
from conformance.laws.http.view import is_event_stream, streaming
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Framing, Route
from conformance.runtimes.usage import SSE

_SSE = frozenset({Framing.SSE, Framing.SSE_NAMED})
# The client, a limit of its own, or the network ended the call: that blames no server.
_NOT_THE_SERVER = frozenset({End.CANCELLED, End.CONNECT, End.LIMIT_BODY, End.LIMIT_CHUNKS})
_TIMEOUTS = frozenset({End.TIMEOUT_HEADERS, End.TIMEOUT_IDLE, End.TIMEOUT_TOTAL})


def route_of(exchange: Exchange, declared: HttpDeclared) -> Route | None:
    """The route that was called."""
    named = (route for route in declared.runtime.routes if route.name == exchange.route)
    return next(named, None)


def _event_stream(exchange: Exchange, declared: HttpDeclared) -> bool:
    """Whether the body is an event stream that was asked for."""
    route = route_of(exchange, declared)
    return route is not None and route.stream in _SSE and is_event_stream(exchange)


@http_law("OE-HTTP-SSE-001")
def content_type(exchange: Exchange, declared: HttpDeclared) -> Ruling:
    """A stream says that it is one."""
    route = route_of(exchange, declared)
    asked = route is not None and route.stream in _SSE and streaming(exchange)
    if not asked or exchange.status != 200:
        return None
    if exchange.media_type == SSE:
        return True
    return Finding(f"content type {SSE}", exchange.media_type or "no content type")


@http_law("OE-HTTP-SSE-002")
def syntax(exchange: Exchange, declared: HttpDeclared) -> Ruling:
    """Nothing that clients would drop in silence."""
    if not _event_stream(exchange, declared):
        return None
    stream = parse_sse(exchange.body)
    if stream.faults:
        return Finding("comments and the fields data, event, id, retry", stream.faults[0].problem)
    return Finding("no byte order mark", "one") if stream.bom else True


@http_law("OE-HTTP-SSE-003")
def last_event(exchange: Exchange, declared: HttpDeclared) -> Ruling:
    """The last event is complete."""
    if not _event_stream(exchange, declared) or not exchange.whole:
        return None
    if parse_sse(exchange.body).unfinished:
        return Finding("a blank line after the last event", "the end inside an event")
    return True


@http_law("OE-HTTP-SSE-004")
def data(exchange: Exchange, declared: HttpDeclared) -> Ruling:
    """Each event carries a JSON object, or is the terminator."""
    route = route_of(exchange, declared)
    if route is None or not _event_stream(exchange, declared):
        return None
    terminator = route.terminator
    ends = terminator.values if terminator is not None and terminator.kind == "sse-data" else ()
    for number, event in enumerate(parse_sse(exchange.body).events):
        if event.data in {"[DONE]", *ends}:
            continue
        value = event.value
        if isinstance(value, JsonFault):
            return Finding("one JSON object in each event", value.problem, number)
        if not isinstance(value, dict):
            return Finding("one JSON object in each event", "another JSON value", number)
    return True


@http_law("OE-HTTP-SSE-005")
def stream_end(exchange: Exchange, declared: HttpDeclared) -> Ruling:
    """The framing says where a stream ends."""
    route = route_of(exchange, declared)
    if route is None or not _event_stream(exchange, declared):
        return None
    return framed_end(exchange, route)


def framed_end(exchange: Exchange, route: Route) -> Ruling:
    """Whether the framing of a stream says where it ends, as long as nobody else ended it."""
    kind = exchange.ending.kind
    if kind in _NOT_THE_SERVER:
        return None
    if kind in _TIMEOUTS:
        return Finding("an end of the stream", f"none: {kind.value}")
    if kind is End.COMPLETE or (kind is End.CLOSED and route.close_delimited):
        return True
    return Finding("an end by the framing of the response", f"the end was {kind.value}")


@http_law("OE-HTTP-ERR-001")
def answered(exchange: Exchange, declared: HttpDeclared) -> Ruling:  # noqa: ARG001
    """Every request gets a response."""
    if exchange.status is not None:
        return True
    if exchange.ending.kind in {End.NO_RESPONSE, End.MALFORMED}:
        if exchange.cancelled is not None:
            return None
        return Finding("an HTTP response", f"none: {exchange.ending.kind.value}")
    return None


LAWS = (content_type, syntax, last_event, data, stream_end, answered)
