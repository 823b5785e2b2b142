"""Checks of what a server's probes cost and what their answers are worth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from conformance.checks.http.check import HttpTable, http_check, params
from conformance.checks.http.inference import (
    limit_field,
    ordinary_body,
    prompt_field,
    prompt_value,
    text_route,
)
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.shared import describe_status
from conformance.http.exchange import End, Exchange
from conformance.http.prometheus import Metrics, parse_prometheus
from conformance.model.case import Case
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.identity import at_pointer
from conformance.runtimes.profile import Effect, Framing, Reporter, Route

# Ends in a word of the scripted model, and is a question to any other.
CANARY_PROMPT = "Are you there? RUN"
_ALIVE_SECONDS = 30.0
_HEALTH_SECONDS = 5.0
_COUNTED_SECONDS = 5.0
_HUNG = frozenset({End.TIMEOUT_HEADERS, End.TIMEOUT_IDLE, End.TIMEOUT_TOTAL})
# Builds that say that they are none: packagers leave them so.
_NO_BUILD = re.compile(r"unknown|^$|^[0.]*$", re.IGNORECASE)
_TEXT_CONTRACTS = ("openai-chat", "openai-completions", "openai-responses")


def _passive(declared: HttpDeclared) -> Iterator[Route]:
    """GET routes that have no effect and are there."""
    for route in declared.runtime.routes:
        harmless = route.effect is Effect.NON_MUTATING and route.method == "GET"
        if harmless and declared.states(route.condition):
            yield route


def _each_passive(declared: HttpDeclared) -> Iterable[Case]:
    return [Case(params={"route": route.name}) for route in _passive(declared)]


def _named(probe: HttpProbe, case: Case) -> Route:
    route = probe.named(str(case.params["route"]))
    if route is None:
        probe.skip("the route is not there on this target")
    return route


@http_check(
    "OE-HTTP-PROBE-001",
    advice="Keep what a reader sees until it is out of date, not until it has been read.",
    table=_each_passive,
)
def takes_nothing(probe: HttpProbe, case: Case) -> None:
    """The same route twice, and nothing in between."""
    route = _named(probe, case)
    first = probe.call(route)
    if not first.ok:
        probe.skip(f"the route gives {describe_status(first)}")
    second = probe.call(route)
    expected = f"all that the first answer of {route.name} had"
    if not second.ok:
        probe.fail(expected, describe_status(second), second)
    missing = _missing(first, second, route)
    if missing:
        probe.fail(expected, f"{missing} of its parts less", second)


def _missing(first: Exchange, second: Exchange, route: Route) -> int:
    """How much of the first answer the second lacks; values may differ."""
    if route.unary is Framing.PROMETHEUS:
        series = parse_prometheus(first.body).samples.keys()
        return len(series - parse_prometheus(second.body).samples.keys())
    if first.json is None:
        return int(bool(first.body) and not second.body)
    return _less(first.json, second.json)


def _less(first: Any, second: Any) -> int:
    if isinstance(first, dict):
        if not isinstance(second, dict):
            return len(first)
        return sum(1 if key not in second else _less(first[key], second[key]) for key in first)
    if isinstance(first, list):
        if not isinstance(second, list):
            return len(first)
        shared = sum(_less(one, other) for one, other in zip(first, second, strict=False))
        return max(0, len(first) - len(second)) + shared
    return 0


@http_check(
    "OE-HTTP-PROBE-002",
    advice="Report the state of the engine; a probe that generates belongs on a route of its own.",
    table=_each_passive,
)
def runs_no_model(probe: HttpProbe, case: Case) -> None:
    """Counters, the route, counters."""
    before = _resting(probe)
    if not before:
        probe.skip("the server reports no token counters")
    route = _named(probe, case)
    seen = probe.call(route)
    grown = sum(1 for series, value in _tokens(probe).items() if value > before.get(series, 0))
    if grown:
        expected = f"the same token counters after {route.name}"
        probe.fail(expected, f"{grown} of them have grown", seen)


def _metrics(probe: HttpProbe) -> Metrics:
    routes = (each for each in _passive(probe.declared) if each.unary is Framing.PROMETHEUS)
    route = next(routes, None)
    if route is None:
        probe.skip("no route for metrics on this target")
    seen = probe.call(route)
    if not seen.ok:
        probe.skip(f"the route {route.name} gives {describe_status(seen)}")
    return parse_prometheus(seen.body)


def _tokens(probe: HttpProbe) -> dict[str, float]:
    return dict(_metrics(probe).counters("token"))


def _patience(probe: HttpProbe) -> float:
    """Seconds in which counters have to follow what happens."""
    return min(probe.seconds(_COUNTED_SECONDS), probe.connection.limits.total_seconds)


def _resting(probe: HttpProbe) -> dict[str, float]:
    """Token counters that two looks in a row have found the same: what earlier calls left behind
    has come to its end.
    """
    seen = [_tokens(probe)]

    def still() -> bool:
        seen.append(_tokens(probe))
        return seen[-1] == seen[-2]

    if not probe.wait_until(still, _patience(probe)):
        probe.skip("the token counters do not come to rest")
    return seen[-1]


def _each_reporter(declared: HttpDeclared) -> Iterable[Case]:
    return [Case(params={"reporter": n}) for n in range(len(declared.runtime.reporters))]


@http_check(
    "OE-HTTP-PROBE-003",
    advice="Judge a build by its own profile; each one has its own.",
    table=_each_reporter,
)
def pinned_build(probe: HttpProbe, case: Case) -> None:
    """What the server says of itself, where it says something."""
    reporter: Reporter = probe.declared.runtime.reporters[int(case.params["reporter"])]
    route = probe.named(reporter.route)
    if route is None:
        probe.skip("the route is not there on this target")
    seen = probe.call(route)
    value = at_pointer(seen.json, reporter.pointer) if seen.ok else None
    if not isinstance(value, str) or _NO_BUILD.search(value):
        probe.skip("the server does not say which build it is")
    if not re.search(reporter.pattern, value):
        expected = f"a build that {probe.declared.runtime.id} describes"
        probe.fail(expected, "another build", seen)


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
    routes = [route for route in _passive(probe.declared) if route.evidence]
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
    live = probe.start(route, ordinary_body(probe, route, tokens=256) | {"stream": True})
    live.wait(bool, probe.seconds(_ALIVE_SECONDS))
    live.cancel()
    probe.finish(live)


def _each_text_route(declared: HttpDeclared) -> Iterable[Case]:
    routes = [(name, declared.route(name)) for name in _TEXT_CONTRACTS]
    return [
        Case(params={"contract": name, "stream": stream})
        for name, route in routes
        if route is not None
        for stream in (False, True)
        if not stream or route.stream is not Framing.NONE
    ]


@http_check(
    "OE-HTTP-PROBE-005",
    advice="Count tokens where they are generated, not where one API is served.",
    table=_each_text_route,
)
def counted(probe: HttpProbe, case: Case) -> None:
    """Counters, a generation, counters."""
    before = _tokens(probe)
    route = probe.route(str(case.params["contract"]))
    stream = {"stream": True} if case.params["stream"] else {}
    body = ordinary_body(probe, route, tokens=16) | stream
    answered = probe.call(route, body)
    if not answered.ok:
        probe.skip(f"an ordinary request got {describe_status(answered)}")

    def grown() -> bool:
        after = _tokens(probe)
        return any(value > before.get(series, 0) for series, value in after.items())

    # Servers may gather their statistics now and then.
    if probe.wait_until(grown, _patience(probe)):
        return
    if not before:
        probe.skip("the server reports no token counters")
    probe.fail("token counters that grow", "the same as before", answered)


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
    limits = probe.connection.limits.within(probe.seconds(_ALIVE_SECONDS))
    theirs = probe.call(_named(probe, case), limits=limits)
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
    live = probe.start(route, _long(probe, route))
    if not live.wait(bool, probe.seconds(_ALIVE_SECONDS)):
        live.cancel()
        probe.finish(live)
        probe.skip("no stream has begun")
    limits = probe.connection.limits.within(probe.seconds(_HEALTH_SECONDS))
    seen = [probe.call(each, limits=limits) for each in passive]
    live.cancel()
    probe.finish(live)
    for each in seen:
        if each.ending.kind in _HUNG:
            limit = f"{probe.seconds(_HEALTH_SECONDS):.0f} s"
            probe.fail(f"an answer within {limit}", "none", each)


def _long(probe: HttpProbe, route: Route) -> dict[str, Any]:
    body = ordinary_body(probe, route, tokens=2048)
    if not probe.declared.scripted:
        body[prompt_field(route)] = prompt_value(route, "Count from one to one thousand in words.")
    return body | {"stream": True}
