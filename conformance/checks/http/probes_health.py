"""Checks of what health is worth: on its own, by a canary, and while the server is busy."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.checks.http.bodies import long_stream, unless_refused
from conformance.checks.http.check import HttpTable, http_check, params
from conformance.checks.http.inference import (
    limit_field,
    ordinary_body,
    text_route,
)
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.probes import passive_routes
from conformance.checks.http.shared import describe_status
from conformance.http.exchange import End, Exchange
from conformance.model.case import Case
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Effect, Framing, Route

# Ends in a word of the scripted model, and is a question to any other.
CANARY_PROMPT = "Are you there? RUN"
_ALIVE_SECONDS = 30.0
_HEALTH_SECONDS = 5.0
_HUNG = frozenset({End.TIMEOUT_HEADERS, End.TIMEOUT_IDLE, End.TIMEOUT_TOTAL})


@http_check(
    "OE-HTTP-PROBE-004",
    advice="Let health depend on progress of the engine, not on its process alone.",
    table=params({"before": "nothing"}, {"before": "a client that left"}),
)
def health_is_honest(probe: HttpProbe, case: Case) -> None:
    """Health, one token, and health again if that hangs."""
    route = text_route(probe)
    routes = _health_routes(probe)
    if case.params["before"] != "nothing":
        _leave(probe, route)
    if not all(probe.call(each).ok for each in routes):
        probe.skip("the server does not say that it is well")
    asked = _canary(probe, route)
    if asked.ending.kind not in _HUNG:
        return
    well = [each.name for each in routes if probe.call(each).ok]
    if well:
        limit = f"{probe.seconds(_ALIVE_SECONDS):.0f} s"
        probe.fail(
            f"an answer within {limit}, or health that says otherwise",
            f"no answer, and 2xx from {', '.join(well)}",
            asked,
        )


def _health_routes(probe: HttpProbe) -> list[Route]:
    """Routes that say how the server is, and cost nothing."""
    routes = [route for route in passive_routes(probe.declared) if route.evidence]
    if not routes:
        probe.skip("no passive health route on this target")
    return routes


def _canary(probe: HttpProbe, route: Route) -> Exchange:
    """A request for one token, which is not waited for longer than a server may take."""
    limits = probe.connection.limits.within(probe.seconds(_ALIVE_SECONDS))
    body = ordinary_body(probe, route, tokens=1, prompt=CANARY_PROMPT)
    body[limit_field(route)] = _fewest(route)
    return probe.call(route, body, limits=limits)


def _fewest(route: Route) -> int:
    """The smallest limit that the API takes."""
    return 16 if route.contract == "openai-responses" else 1


def _leave(probe: HttpProbe, route: Route) -> None:
    """Begin a stream and leave it at its first bytes."""
    if route.stream is Framing.NONE:
        probe.skip("the route has no stream to leave")
    live = probe.start(route, long_stream(probe, route, tokens=256))
    live.wait(bool, probe.seconds(_ALIVE_SECONDS))
    live.cancel()
    unless_refused(probe, [probe.finish(live)])


def _canaries(declared: HttpDeclared) -> Iterable[Case]:
    return [
        Case(params={"route": route.name})
        for route in declared.runtime.routes
        if route.effect is Effect.INFERENCE_CANARY and route.method == "GET"
    ]


def _one_at_least(table: HttpTable) -> HttpTable:
    """A table that is never empty: a run says why nothing was judged."""

    def cases(declared: HttpDeclared) -> Iterable[Case]:
        return list(table(declared)) or [Case(params={"route": ""})]

    return cases


@http_check(
    "OE-HTTP-PROBE-006",
    advice="Let the probe take the way that a request takes.",
    table=_one_at_least(_canaries),
)
def canary_agrees(probe: HttpProbe, case: Case) -> None:
    """The server's own canary, and ours."""
    if not case.params["route"]:
        probe.skip("no probe of this target runs the model")
    route = probe.named(str(case.params["route"]))
    if route is None:
        probe.skip("the route is not there on this target")
    limits = probe.connection.limits.within(probe.seconds(_ALIVE_SECONDS))
    theirs = probe.call(route, limits=limits)
    ours = _canary(probe, text_route(probe))
    if theirs.ok != ours.ok:
        expected = "a 2xx status" if ours.ok else "another status than 2xx"
        probe.fail(expected, describe_status(theirs), theirs)


@http_check(
    "OE-HTTP-PROBE-007",
    advice="Answer health from another thread than the one that generates.",
)
def health_while_busy(probe: HttpProbe, case: Case) -> None:  # noqa: ARG001
    """Health in the middle of a stream."""
    route = text_route(probe)
    passive = _health_routes(probe)
    if route.stream is Framing.NONE:
        probe.skip("the route has no stream")
    limits = probe.connection.limits.within(probe.seconds(_HEALTH_SECONDS))
    live = probe.start(route, long_stream(probe, route))
    begun = live.wait(bool, probe.seconds(_ALIVE_SECONDS))
    # What is asked after the stream's end says nothing.
    seen = [probe.call(each, limits=limits) for each in passive if begun and not live.ended]
    live.cancel()
    unless_refused(probe, [probe.finish(live)])
    if not begun:
        probe.skip("no stream has begun")
    if not seen:
        probe.skip("the stream was over before health could be asked")
    for each in seen:
        if each.ending.kind in _HUNG:
            limit = f"{probe.seconds(_HEALTH_SECONDS):.0f} s"
            probe.fail(f"an answer within {limit}", "none", each)
