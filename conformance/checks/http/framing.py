"""Checks of how streams and answers are framed: ordinary calls that the laws judge."""

from __future__ import annotations

from conformance.checks.http.check import http_check, params
from conformance.checks.http.inference import ordinary_body, text_route
from conformance.checks.http.probe import HttpProbe
from conformance.model.case import Case
from conformance.runtimes.profile import Framing

_STREAMS = params({}, {"long": True})


def _stream(probe: HttpProbe, case: Case) -> None:
    route = text_route(probe)
    if route.stream is Framing.NONE:
        probe.skip("the route has no streams")
    body = ordinary_body(probe, route, tokens=200 if case.params.get("long") else 16)
    if case.params.get("usage"):
        body["stream_options"] = {"include_usage": True}
    probe.call(route, body | {"stream": True})
    probe.settle()


@http_check("OE-HTTP-SSE-001", advice="Send the content type of event streams.", table=_STREAMS)
def content_type(probe: HttpProbe, case: Case) -> None:
    """A law about streams."""
    _stream(probe, case)


@http_check("OE-HTTP-SSE-002", advice="Write each line of data as a field.", table=_STREAMS)
def syntax(probe: HttpProbe, case: Case) -> None:
    """A law about streams."""
    _stream(probe, case)


@http_check("OE-HTTP-SSE-003", advice="End each event with a blank line.", table=_STREAMS)
def last_event(probe: HttpProbe, case: Case) -> None:
    """A law about streams."""
    _stream(probe, case)


@http_check("OE-HTTP-SSE-004", advice="Send one JSON object in each event.", table=_STREAMS)
def data(probe: HttpProbe, case: Case) -> None:
    """A law about streams."""
    _stream(probe, case)


@http_check("OE-HTTP-SSE-005", advice="End the response after the last event.", table=_STREAMS)
def stream_end(probe: HttpProbe, case: Case) -> None:
    """A law about streams."""
    _stream(probe, case)


@http_check("OE-HTTP-SSE-006", advice="End each stream in one way.", table=_STREAMS)
def terminator(probe: HttpProbe, case: Case) -> None:
    """A law about streams."""
    _stream(probe, case)


@http_check(
    "OE-HTTP-SSE-007",
    advice="Report usage in one place, and only where it is asked for.",
    table=params({}, {"usage": True}),
)
def usage_place(probe: HttpProbe, case: Case) -> None:
    """A law about streams of the OpenAI APIs."""
    _stream(probe, case)


@http_check(
    "OE-HTTP-ERR-001",
    advice="Catch what a request handler raises and answer it.",
    table=params({"temperature": 0}, {"temperature": "hot"}, {"temperature": -1}),
)
def answered(probe: HttpProbe, case: Case) -> None:
    """A law about every call."""
    route = text_route(probe)
    body = ordinary_body(probe, route, tokens=4)
    probe.call(route, body | {"temperature": case.params["temperature"]})
    probe.settle()
