"""Token counters that grow during a look at a route, and not because of it."""

from __future__ import annotations

from conformance.model.status import Status
from conformance.mutants.http.ask import Ask
from conformance.mutants.http.fixture import options_for
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.observing import METRICS, TOKENS, add
from conformance.mutants.http.reply import Reply
from conformance.mutants.http.server import serving
from conformance.runner.run import run_http

RUNS_NO_MODEL = "OE-HTTP-PROBE-002"


def _ended_meanwhile(ask: Ask, _: Reply) -> None:
    """A request that its client left comes to its end at the first look at health that follows
    one at the counters.
    """
    if ask.path == METRICS:
        ask.state.setdefault("left", True)
    elif ask.path == "/health" and ask.state.get("left"):
        ask.state["left"] = False
        add(ask, TOKENS, 700)


def test_what_ends_meanwhile_is_not_the_routes() -> None:
    """One growth of the counters, which no further look repeats, is no model run by the route."""
    server = HttpMutant("ended-meanwhile", RUNS_NO_MODEL, "Not a fault.", on_reply=_ended_meanwhile)
    with serving(server) as served:
        report = run_http(options_for(served.origin, ids=(RUNS_NO_MODEL,)))
    status = {each.requirement: each.status for each in report.judgements}
    assert status[RUNS_NO_MODEL] is Status.PASS
