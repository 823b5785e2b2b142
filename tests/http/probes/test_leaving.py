"""Clients that leave: what is judged, and what a server's gauges cannot show."""

from __future__ import annotations

from dataclasses import replace

from conformance.model.status import Status
from conformance.mutants.http.ask import Ask
from conformance.mutants.http.fixture import options_for
from conformance.mutants.http.matrix import BUDGET, PATIENCE
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.observing import METRICS
from conformance.mutants.http.probe_mutants import MUTANTS
from conformance.mutants.http.reply import Reply
from conformance.mutants.http.server import serving
from conformance.runner.run import run_http

ROW = "OE-HTTP-CANCEL-001"


def judged(mutant: HttpMutant | None = None) -> tuple[Status, str]:
    """What the row says of the fixture."""
    with serving(mutant) as server:
        options = options_for(server.origin, budget=BUDGET, ids=(ROW,))
        report = run_http(replace(options, limits=options.limits.within(PATIENCE)))
    (found,) = [each for each in report.judgements if each.requirement == ROW]
    return found.status, found.detail


def test_the_right_server_frees_what_was_left() -> None:
    """On each of its streaming routes."""
    assert judged() == (Status.PASS, "")


def test_a_gauge_that_is_out_of_date_blames_nobody() -> None:
    """It still says that something runs, and no token is counted any more."""
    (forgetful,) = [each for each in MUTANTS if each.requirement == ROW]
    status, detail = judged(replace(forgetful, on_ask=None))
    assert status is Status.BLOCKED
    assert "out of date" in detail


def test_without_gauges_nothing_is_judged() -> None:
    """Counters alone do not say what runs."""

    def without(ask: Ask, reply: Reply) -> None:
        if ask.path == METRICS and isinstance(reply.body, str):
            kept = [line for line in reply.body.splitlines() if "running" not in line]
            reply.body = "\n".join(kept) + "\n"

    status, detail = judged(HttpMutant("no-gauges", ROW, "", on_reply=without))
    assert status is Status.BLOCKED
    assert "no gauge" in detail
