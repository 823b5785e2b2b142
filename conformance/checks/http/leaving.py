"""Checks of clients that leave: the work for them ends, and nobody waits for it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.checks.check import Check
from conformance.checks.http.bodies import LONG, body_for, long_stream, unless_refused
from conformance.checks.http.check import http_check
from conformance.checks.http.inference import fitting
from conformance.checks.http.native import route_in, routes_of
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.probes import metrics_of, token_counters
from conformance.checks.http.shared import describe_status
from conformance.http.client import LiveExchange
from conformance.http.exchange import End, Exchange
from conformance.http.prometheus import Metrics
from conformance.model.case import Case
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Effect, Framing, Route

_LEAVERS = 3
_BEGUN_SECONDS = 30.0
_SERVED_SECONDS = 30.0
# Servers look for clients that have left once a second at worst; ten of that are no haste.
_FREED_SECONDS = 10.0
# Servers gather their statistics every few seconds, some only while a step of the model ends.
_SHOWN_SECONDS = 10.0
# Between two looks at gauges that have to fall after an answer in one piece was left: llama.cpp
# sees that a client has left when nothing was answered to anybody for a second.
_QUIET_SECONDS = 2.0
# The same answer must be seen to have more than this many times the tokens of the one left.
_OUTGROWS = 2
_RUNNING = ("running", "processing")
_HUNG = frozenset({End.TIMEOUT_HEADERS, End.TIMEOUT_IDLE, End.TIMEOUT_TOTAL})


def _streaming(declared: HttpDeclared) -> Iterable[Case]:
    contracts = {route.contract for route in declared.runtime.routes if route.contract}
    routes = [r for name in sorted(contracts) for r in routes_of(declared, name, stream=True)]
    return [Case(params={"route": route.name}) for route in routes]


@http_check(
    "OE-HTTP-CANCEL-001",
    advice="End a generation when the connection that it is for is gone.",
    table=_streaming,
)
def freed(probe: HttpProbe, case: Case) -> None:
    """Gauges of what runs: one more while a stream runs, and not when it was left."""
    route = route_in(probe, case)
    before = _at_rest(probe)
    counted = sum(token_counters(probe).values())
    tokens = fitting(probe, LONG)
    live = probe.start(route, long_stream(probe, route, tokens=tokens))
    begun = live.wait(bool, probe.seconds(_BEGUN_SECONDS))
    during = _risen(probe, live, before) if begun else None
    over = live.ended
    live.cancel()
    seen = probe.finish(live)
    unless_refused(probe, [seen])
    if not begun:
        probe.skip("no stream has begun")
    during = _while_it_ran(probe, during, over=over)
    limit = _limit(probe, "stream")
    if not _falls(probe, _above(during, before), before, limit):
        _not_freed(probe, counted, during, limit)
        probe.fail(f"the generation ends within {limit:.0f} s", "it still runs", seen)
    if sum(token_counters(probe).values()) - counted >= tokens:
        probe.skip("the answer was whole before the server could see that its client had left")


def _in_one_piece(declared: HttpDeclared) -> Iterable[Case]:
    found = [
        route.name
        for route in declared.runtime.routes
        if route.contract and route.effect is Effect.INFERENCE and declared.states(route.condition)
        if route.unary is not Framing.NONE
    ]
    return [Case(params={"route": name}) for name in found]


@http_check(
    "OE-HTTP-CANCEL-002",
    advice="Look now and then whether the client of an answer in one piece is still there.",
    table=_in_one_piece,
)
def whole_freed(probe: HttpProbe, case: Case) -> None:
    """Gauges of what runs: one more until a client stops waiting. The same request, given more
    time, has more tokens, which proves that the answer had not ended by itself.
    """
    route = route_in(probe, case)
    before = _at_rest(probe)
    counted = sum(token_counters(probe).values())
    body = _whole(probe, route)
    since = time.monotonic()
    live = probe.start(route, body)
    during = _risen(probe, live, before)
    seen, over = _leave(probe, live)
    unless_refused(probe, [seen])
    risen = _above(_while_it_ran(probe, during, over=over), before)
    limit = _limit(probe, "unary")
    if not _falls(probe, risen, before, limit, quiet=_QUIET_SECONDS):
        # Nothing need be counted yet when the client leaves: what was counted since tells more.
        _not_freed(probe, counted, metrics_of(probe), limit)
        probe.fail(f"the generation ends within {limit:.0f} s", "it still runs", seen)
    lasted = time.monotonic() - since
    grown = _grown(probe, counted, limit)
    again = probe.start(route, body)
    counted += grown
    enough = _OUTGROWS * grown
    probe.wait_until(
        lambda: again.ended or _growth(probe, counted) > enough, max(limit / 2, 2 * lasted)
    )
    _, whole = _leave(probe, again)
    _falls(probe, risen, before, limit, quiet=_QUIET_SECONDS)
    # A server may count what it answers, and nothing of what it does for nobody.
    if (whole and not grown) or _grown(probe, counted, limit, enough) <= enough:
        probe.skip("the answer may have been whole before the server could see its client leave")


def _growth(probe: HttpProbe, counted: float) -> float:
    """By how much the token counters have grown since they were at `counted`."""
    return sum(token_counters(probe).values()) - counted


def _grown(probe: HttpProbe, counted: float, limit: float, enough: float = math.inf) -> float:
    """The same when they do not grow any more, or have grown by more than is `enough`: some
    follow a little after the gauges.
    """
    growth = _growth(probe, counted)
    if enough < growth:
        return growth
    probe.wait_until(lambda: _growth(probe, counted) > growth, limit / 10)
    return _growth(probe, counted)


def _whole(probe: HttpProbe, route: Route) -> dict[str, Any]:
    """A long answer in one piece; some APIs stream unless they are told not to."""
    body = long_stream(probe, route)
    return body | {"stream": False} if "stream" in body else body


def _leave(probe: HttpProbe, live: LiveExchange) -> tuple[Exchange, bool]:
    """Leave a call; what was seen of it, and whether it was over before."""
    over = live.ended
    live.cancel()
    seen = probe.finish(live)
    return seen, over or seen.ending.kind is not End.CANCELLED


def _at_rest(probe: HttpProbe) -> dict[str, float]:
    """The gauges before a case begins. What earlier calls left behind may still run; a gauge that
    never rests is taken as it is.
    """
    probe.wait_until(lambda: not any(_running(metrics_of(probe)).values()), _patience(probe))
    return _running(metrics_of(probe))


def _while_it_ran(probe: HttpProbe, during: Metrics | None, *, over: bool) -> Metrics:
    """The metrics that showed the call; skips the case when none did, or it was over before its
    client left.
    """
    if during is None and not (over and _running(metrics_of(probe))):
        probe.skip("no gauge of this server shows a request that runs")
    if during is None or over:
        probe.skip("the answer was whole before its client left")
    return during


def _limit(probe: HttpProbe, kind: str) -> float:
    """Seconds in which the gauges have to fall; kind: what the profile states a time for."""
    stated = probe.declared.runtime.cancel.get(kind, 0.0)
    return min(probe.seconds(max(_FREED_SECONDS, stated)), probe.connection.limits.total_seconds)


def _falls(
    probe: HttpProbe,
    risen: frozenset[str],
    before: Mapping[str, float],
    limit: float,
    *,
    quiet: float = 0.0,
) -> bool:
    """Whether the gauges that had risen are where they were before within the limit. quiet:
    seconds without a call between two looks.
    """
    quiet = min(probe.seconds(quiet), limit / 3)
    looked = -math.inf

    def fallen() -> bool:
        now = _running(metrics_of(probe))
        return all(now.get(name, 0) <= before.get(name, 0) for name in risen)

    def ended() -> bool:
        nonlocal looked
        if time.monotonic() - looked < quiet:
            return False
        found = fallen()
        looked = time.monotonic()
        return found

    return probe.wait_until(ended, limit) or fallen()


def _risen(probe: HttpProbe, live: LiveExchange, before: Mapping[str, float]) -> Metrics | None:
    """The metrics that first show the call: servers bring their gauges up to date now and then.
    None when they never do, or the call is over first.
    """
    seen: list[Metrics] = []

    def shown() -> bool:
        metrics = metrics_of(probe)
        if _above(metrics, before):
            seen.append(metrics)
        return bool(seen) or live.ended

    probe.wait_until(shown, _patience(probe))
    return seen[0] if seen else None


def _patience(probe: HttpProbe) -> float:
    """Seconds in which gauges have to follow what happens."""
    return min(probe.seconds(_SHOWN_SECONDS), probe.connection.limits.total_seconds)


def _above(metrics: Metrics, before: Mapping[str, float]) -> frozenset[str]:
    """The gauges that are higher than before."""
    now = _running(metrics)
    return frozenset(name for name, value in now.items() if value > before.get(name, 0))


def _not_freed(probe: HttpProbe, counted: float, during: Metrics, limit: float) -> None:
    """Skips a gauge that is out of date: the counter of tokens went along with the answer, and
    stands still now.
    """
    grown = sum(during.counters("token").values()) - counted
    at = sum(token_counters(probe).values())
    if grown > 0 and not probe.wait_until(
        lambda: sum(token_counters(probe).values()) > at, min(limit, 1.0)
    ):
        probe.skip("the gauge of what runs is out of date: no token is counted any more")


def _running(metrics: Metrics) -> dict[str, float]:
    """Gauges of requests that are being worked on."""
    found = {}
    for series, value in metrics.samples.items():
        name = series.partition("{")[0]
        # Gauges of times have such words too, and need not fall.
        counts = "req" in name and any(word in name for word in _RUNNING)
        if metrics.types.get(name) == "gauge" and counts:
            found[series] = value
    return found


def others_served(probe: HttpProbe, case: Case) -> None:
    """Some begin a long stream and leave; an ordinary request comes after them."""
    route = route_in(probe, case)
    if not _ordinary(probe, route):
        probe.skip("an ordinary request is not answered")
    left = [probe.start(route, long_stream(probe, route)) for _ in range(_LEAVERS)]
    # The others may stand in the queue behind it.
    left[0].wait(bool, probe.seconds(_BEGUN_SECONDS))
    for live in left:
        live.cancel()
    unless_refused(probe, [probe.finish(live) for live in left])
    seconds = min(probe.seconds(_SERVED_SECONDS), probe.connection.limits.total_seconds)
    if not probe.wait_until(lambda: _ordinary(probe, route), seconds):
        last = probe.log.transcripts[-1]
        actual = "no answer in time" if last.ending.kind in _HUNG else describe_status(last)
        probe.fail(f"an ordinary request is answered within {seconds:.0f} s", actual, last)


def _ordinary(probe: HttpProbe, route: Route) -> bool:
    """Whether a short request is answered in the time that a client that waits has."""
    limits = probe.connection.limits.within(probe.seconds(_SERVED_SECONDS))
    stream = route.stream is not Framing.NONE
    return probe.call(route, body_for(probe, route, tokens=1, stream=stream), limits=limits).ok


def _others_served(requirement: str, contract: str) -> Check:
    def table(declared: HttpDeclared) -> list[Case]:
        routes = routes_of(declared, contract, stream=True)
        return [Case(params={"route": route.name}) for route in routes]

    advice = "Give up what nobody reads, also what still waits for its turn."
    return Check(requirement, others_served, table, None, advice, "http.leaving.others_served")


CHECKS = tuple(
    _others_served(requirement, contract)
    for requirement, contract in (
        ("OE-HTTP-OLLAMA-016", "ollama-native"),
        ("OE-HTTP-TGI-011", "tgi-native"),
        ("OE-HTTP-LMS-010", "lmstudio-native"),
    )
)
