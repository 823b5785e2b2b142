"""The calls of the worker checks: work with a budget, health, and exact bytes on a socket."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from conformance.checks.http.probe import JSON_TYPE, HttpProbe
from conformance.errors import HarnessError
from conformance.http.client import LiveExchange
from conformance.http.exchange import Exchange, Headers
from conformance.http.limits import Limits
from conformance.http.raw import Step
from conformance.runtimes.profile import Route
from conformance.runtimes.worker import CONTRACT, HEALTH, WorkerTerms

# Short enough to wait for, long against the clock of any server.
SHORT_SECONDS = 0.4
# What a target may be late by on a loaded machine before a limit counts as missed.
SLACK_SECONDS = 8.0
COUNTERS = ("depth", "capacity", "rejected")
UNAVAILABLE = "model unavailable"
FULL = "inference queue full"
FAILED = "inference failed"


def terms_of(probe: HttpProbe) -> WorkerTerms:
    """The terms of the worker under test."""
    terms = probe.declared.worker
    if terms is None:
        raise HarnessError("a check of workers on a target that is none")
    return terms


def granted(probe: HttpProbe, seconds: float) -> float:
    """The budget in seconds that `work(..., budget=seconds)` has: what it asks for, or what the
    target's file says when callers cannot ask for less.
    """
    terms = terms_of(probe)
    return min(seconds, terms.budget_seconds) if terms.budget_header else terms.budget_seconds


def budget_headers(probe: HttpProbe, budget: float | None) -> Headers:
    """The header that asks for this budget (seconds), if there is one."""
    name = terms_of(probe).budget_header
    return ((name, str(round(budget * 1000))),) if name and budget is not None else ()


def start(
    probe: HttpProbe, body: bytes | None = None, *, budget: float | None = None
) -> LiveExchange:
    """Start work; `probe.finish` must be called on it."""
    data = terms_of(probe).request.encode() if body is None else body
    headers = (JSON_TYPE, *budget_headers(probe, budget))
    return probe.start(probe.route(CONTRACT), data, headers=headers, limits=limits(probe))


def work(probe: HttpProbe, body: bytes | None = None, *, budget: float | None = None) -> Exchange:
    """Send work and wait for its answer. budget: seconds, None for the target's own."""
    return probe.finish(start(probe, body, budget=budget))


def limits(probe: HttpProbe) -> Limits:
    """Limits of a call that a right worker ends within its budget."""
    own = probe.connection.limits
    longest = terms_of(probe).budget_seconds + probe.seconds(2 * SLACK_SECONDS)
    return replace(own, headers_seconds=longest, idle_seconds=longest, total_seconds=2 * longest)


def health(probe: HttpProbe) -> Exchange:
    """Ask the health route."""
    return probe.call(health_route(probe))


def health_route(probe: HttpProbe) -> Route:
    """The health route."""
    return probe.declared.runtime.route(HEALTH)


def counters(probe: HttpProbe) -> dict[str, int]:
    """The counters of the health route; empty unless the worker is ready and measures."""
    seen = health(probe)
    found = seen.json if seen.status == 200 else None
    if not isinstance(found, dict):
        return {}
    return {name: found[name] for name in COUNTERS if type(found.get(name)) is int}


def measured(probe: HttpProbe) -> dict[str, int]:
    """All counters. Skips the case when the worker does not measure them."""
    found = counters(probe)
    if len(found) < len(COUNTERS):
        missing = ", ".join(name for name in COUNTERS if name not in found)
        probe.skip(f"the worker does not report {missing}")
    return found


def raw(probe: HttpProbe, head: Headers, steps: Iterable[Step]) -> Exchange:
    """Send the head of a work request with these headers, then the steps."""
    target = probe.connection.target
    if target.secrets():
        probe.skip("bytes on a socket are recorded as they are, so they carry no credentials")
    route = probe.route(CONTRACT)
    lines = [f"{route.method} {route.path} HTTP/1.1", f"host: {target.origin.authority}"]
    lines += [f"{name}: {value}" for name, value in (JSON_TYPE, *target.headers, *head)]
    first = "\r\n".join((*lines, "", "")).encode("latin-1")
    return probe.raw(route, (first, *steps), limits=limits(probe))


def error_of(exchange: Exchange) -> Any:
    """The error of an answer; None when it has none."""
    found = exchange.json
    return found.get("error") if isinstance(found, dict) else None


def padded(probe: HttpProbe, length: int) -> bytes:
    """The target's own request with spaces behind it, which JSON ignores. Skips the case when it
    is longer than `length` already.
    """
    body = terms_of(probe).request.encode()
    if len(body) > length:
        probe.skip("the request of the target's file is longer than its body limit")
    return body.ljust(length)


def must_be(
    probe: HttpProbe, exchange: Exchange, status: int, when: str, error: str | None = None
) -> None:
    """Fail unless the call was answered with this status, and this error when one is given."""
    expected = str(status) if error is None else f"{status} with the error {error!r}"
    if not exchange.whole or exchange.status != status:
        probe.fail(f"{expected} {when}", said(exchange), exchange)
    if error is not None and error_of(exchange) != error:
        probe.fail(f"{expected} {when}", "another body", exchange)


def said(exchange: Exchange) -> str:
    """How the target answered, without content."""
    return f"status {exchange.status}" if exchange.whole else exchange.ending.kind.value
