"""Checks of clients that leave a stream: the work for them ends, and nobody waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.checks.check import Check
from conformance.checks.http.bodies import LONG, body_for, long_stream, unless_refused
from conformance.checks.http.check import http_check
from conformance.checks.http.inference import fitting
from conformance.checks.http.native import route_in, routes_of
from conformance.checks.http.probe import HttpProbe
from conformance.checks.http.probes import metrics_of, token_counters
from conformance.checks.http.shared import describe_status
from conformance.http.client import LiveExchange
from conformance.http.exchange import End
from conformance.http.prometheus import Metrics
from conformance.model.case import Case
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Framing, Route

_LEAVERS = 3
_BEGUN_SECONDS = 30.0
_SERVED_SECONDS = 30.0
# Servers look for clients that have left once a second at worst; ten of that are no haste.
_FREED_SECONDS = 10.0
# Servers gather their statistics every few seconds, some only while a step of the model ends.
_SHOWN_SECONDS = 10.0
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
    # What earlier calls left behind may still run; a gauge that never rests is taken as it is.
    probe.wait_until(lambda: not any(_running(metrics_of(probe)).values()), _patience(probe))
    before = _running(metrics_of(probe))
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
    if during is None and not (over and _running(metrics_of(probe))):
        probe.skip("no gauge of this server shows a request that runs")
    if during is None or over:
        probe.skip("the answer was whole before its client left")
    risen = _above(during, before)
    stated = probe.declared.runtime.cancel.get("stream", 0.0)
    limit = min(probe.seconds(max(_FREED_SECONDS, stated)), probe.connection.limits.total_seconds)

    def ended() -> bool:
        now = _running(metrics_of(probe))
        return all(now.get(name, 0) <= before.get(name, 0) for name in risen)

    if not probe.wait_until(ended, limit):
        _not_freed(probe, counted, during, limit)
        probe.fail(f"the generation ends within {limit:.0f} s", "it still runs", seen)
    if sum(token_counters(probe).values()) - counted >= tokens:
        probe.skip("the answer was whole before the server could see that its client had left")


def _risen(probe: HttpProbe, live: LiveExchange, before: Mapping[str, float]) -> Metrics | None:
    """The metrics that first show the stream: servers bring their gauges up to date now and then.
    None when they never do, or the stream is over first.
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
    """Skips a gauge that is out of date: the counter of tokens went along with the stream, and
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
