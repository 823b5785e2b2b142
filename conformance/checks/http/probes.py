"""Checks of what a server's probes cost and what their answers are worth."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from typing import Any

from conformance.checks.http.check import http_check
from conformance.checks.http.inference import ordinary_body
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.shared import describe_status
from conformance.http.exchange import Exchange
from conformance.http.prometheus import Metrics, parse_prometheus
from conformance.model.case import Case
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.identity import at_pointer
from conformance.runtimes.profile import Effect, Framing, Reporter, Route

_COUNTED_SECONDS = 5.0
# Longer than a look at a passive route takes: what runs besides shows in this time too.
_REST_SECONDS = 0.2
# A route that runs the model costs tokens each time; what a client left behind is counted when it
# ends, at any time, once.
_ROUNDS = 3
# Builds that say that they are none: packagers leave them so.
_NO_BUILD = re.compile(r"unknown|^$|^[0.]*$", re.IGNORECASE)
_TEXT_CONTRACTS = ("openai-chat", "openai-completions", "openai-responses")


def passive_routes(declared: HttpDeclared) -> Iterator[Route]:
    """GET routes that have no effect and are there."""
    for route in declared.runtime.routes:
        harmless = route.effect is Effect.NON_MUTATING and route.method == "GET"
        if harmless and declared.states(route.condition):
            yield route


def _each_passive(declared: HttpDeclared) -> Iterable[Case]:
    return [Case(params={"route": route.name}) for route in passive_routes(declared)]


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
    """Counters, the route, counters; once more when they have grown."""
    route = _named(probe, case)
    for _ in range(_ROUNDS):
        before = _resting(probe)
        if not before:
            probe.skip("the server reports no token counters")
        seen = probe.call(route)
        after = token_counters(probe)
        grown = sum(1 for series, value in after.items() if value > before.get(series, 0))
        if not grown:
            return
    probe.fail(f"the same token counters after {route.name}", f"{grown} of them have grown", seen)


def metrics_of(probe: HttpProbe) -> Metrics:
    """What the route for metrics says; skips the case without one."""
    routes = (each for each in passive_routes(probe.declared) if each.unary is Framing.PROMETHEUS)
    route = next(routes, None)
    if route is None:
        probe.skip("no route for metrics on this target")
    seen = probe.call(route)
    if not seen.ok:
        probe.skip(f"the route {route.name} gives {describe_status(seen)}")
    return parse_prometheus(seen.body)


def token_counters(probe: HttpProbe) -> dict[str, float]:
    """The counters of tokens, by series."""
    return dict(metrics_of(probe).counters("token"))


def _patience(probe: HttpProbe) -> float:
    """Seconds in which counters have to follow what happens."""
    return min(probe.seconds(_COUNTED_SECONDS), probe.connection.limits.total_seconds)


def _resting(probe: HttpProbe) -> dict[str, float]:
    """Token counters that have not changed for a while: what earlier calls left behind, and is
    counted as it goes, has come to its end.
    """
    seen, since = token_counters(probe), time.monotonic()

    def still() -> bool:
        nonlocal seen, since
        now = token_counters(probe)
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since >= _REST_SECONDS

    if not probe.wait_until(still, _patience(probe)):
        probe.skip("the token counters do not come to rest")
    return seen


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
    before = token_counters(probe)
    route = probe.route(str(case.params["contract"]))
    stream = {"stream": True} if case.params["stream"] else {}
    body = ordinary_body(probe, route, tokens=16) | stream
    answered = probe.call(route, body)
    if not answered.ok:
        probe.skip(f"an ordinary request got {describe_status(answered)}")

    def grown() -> bool:
        after = token_counters(probe)
        return any(value > before.get(series, 0) for series, value in after.items())

    # Servers may gather their statistics now and then.
    if probe.wait_until(grown, _patience(probe)):
        return
    if not before:
        probe.skip("the server reports no token counters")
    probe.fail("token counters that grow", "the same as before", answered)
