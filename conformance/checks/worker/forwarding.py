"""A transport that forwards to the worker under test: the same answers, one step further away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.checks.http.check import http_check, params
from conformance.checks.http.probe import JSON_TYPE, HttpProbe
from conformance.checks.worker.calls import (
    SHORT_SECONDS,
    budget_headers,
    granted,
    limits,
    must_be,
    said,
    terms_of,
    work,
)
from conformance.checks.worker.outcomes import DEPTH, TEXTS
from conformance.checks.worker.stage import staged
from conformance.errors import UnreachableError
from conformance.http.client import HttpConnection
from conformance.http.exchange import End, Exchange, Request
from conformance.http.origin import parse_origin
from conformance.model.case import Case
from conformance.runtimes.worker import CONTRACT

_STAGES: dict[str, dict[str, Any]] = {
    "answer": {"work": "echo"},
    "no depth": {"work": "echo", "measured": False},
    "invalid": {"work": "invalid", "text": TEXTS["lines"]},
    "busy": {"work": "busy"},
    "failed": {"work": "fail"},
    "starting": {"readiness": "starting"},
}


@http_check(
    "OE-WORK-017",
    advice="Pass on status, content type, body and x-queue-depth of the worker's answer as they "
    "are. When the budget ends first, the answer is 504, as it is without forwarding.",
    table=params(*({"stage": name} for name in (*_STAGES, "silent"))),
    waits=1.0,
)
def forwarded(probe: HttpProbe, case: Case) -> None:
    """Forwarding changes nothing that a caller sees."""
    if not terms_of(probe).forwarder:
        probe.skip("the target's file names no forwarder in front of it")
    name = case.params["stage"]
    if name == "silent":
        budget = granted(probe, SHORT_SECONDS)
        with staged(probe, work="hold"):
            must_be(probe, _forward(probe, budget), 504, "for a worker that uses up the budget")
        return
    with staged(probe, **_STAGES[name]):
        direct = work(probe)
        if not direct.whole:
            probe.skip(f"the worker itself did not answer: {said(direct)}")
        seen = _forward(probe, None)
        for what, ours, theirs in (
            ("status", seen.status, direct.status),
            ("content type", seen.header("content-type"), direct.header("content-type")),
            ("body", seen.body, direct.body),
            ("queue depth", seen.header(DEPTH), direct.header(DEPTH)),
        ):
            if ours != theirs:
                probe.fail(f"the worker's {what}", f"another {what}: {said(seen)}", seen)


def _forward(probe: HttpProbe, budget: float | None) -> Exchange:
    """Send the target's own request through the forwarder."""
    terms = terms_of(probe)
    target = replace(probe.connection.target, origin=parse_origin(terms.forwarder))
    headers = (JSON_TYPE, *budget_headers(probe, budget))
    request = Request("POST", terms.work_path, headers, terms.request.encode())
    with HttpConnection(target, limits(probe)) as connection:
        seen = connection.finish(connection.start(request, route="work", contract=CONTRACT))
    if seen.ending.kind is End.CONNECT:
        raise UnreachableError(f"no connection to the forwarder {terms.forwarder}")
    probe.record(seen)
    return seen
