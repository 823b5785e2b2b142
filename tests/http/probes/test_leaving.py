"""Clients that leave: what is judged, and what a server's gauges cannot show."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from dataclasses import replace

import pytest

from conformance.model.status import Status
from conformance.mutants.http.ask import Ask
from conformance.mutants.http.fixture import options_for
from conformance.mutants.http.matrix import BUDGET, PATIENCE
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.observing import METRICS, RUNNING, TOKENS, add
from conformance.mutants.http.probe_mutants import MUTANTS
from conformance.mutants.http.reply import Reply
from conformance.mutants.http.server import serving
from conformance.runner.run import run_http

ROW, WHOLE = "OE-HTTP-CANCEL-001", "OE-HTTP-CANCEL-002"


def judged(mutant: HttpMutant | None = None, row: str = ROW) -> tuple[Status, str]:
    """What the row says of the fixture."""
    with serving(mutant) as server:
        options = options_for(server.origin, budget=BUDGET, ids=(row,))
        report = run_http(replace(options, limits=options.limits.within(PATIENCE)))
    (found,) = [each for each in report.judgements if each.requirement == row]
    return found.status, found.detail


def judged_whole(on_left: Callable[[Ask], None]) -> tuple[Status, str]:
    """What the row of answers in one piece says of a server that does this when one is left."""

    def watched(ask: Ask, pauses: Generator[float]) -> Generator[float]:
        try:
            yield from pauses
        except GeneratorExit:
            on_left(ask)
            raise

    def on_reply(ask: Ask, reply: Reply) -> None:
        if reply.pauses is not None:
            reply.pauses = watched(ask, reply.pauses)

    return judged(HttpMutant("test", WHOLE, "", on_reply=on_reply), WHOLE)


@pytest.mark.parametrize("row", [ROW, WHOLE])
def test_the_right_server_frees_what_was_left(row: str) -> None:
    """On each of its routes, streamed and in one piece."""
    assert judged(row=row) == (Status.PASS, "")


def test_a_gauge_that_is_out_of_date_blames_nobody() -> None:
    """It still says that something runs, and no token is counted any more."""
    (forgetful,) = [each for each in MUTANTS if each.requirement == ROW]
    status, detail = judged(replace(forgetful, on_ask=None))
    assert status is Status.BLOCKED
    assert "out of date" in detail


@pytest.mark.parametrize("row", [ROW, WHOLE])
def test_without_gauges_nothing_is_judged(row: str) -> None:
    """Counters alone do not say what runs."""

    def without(ask: Ask, reply: Reply) -> None:
        if ask.path == METRICS and isinstance(reply.body, str):
            kept = [line for line in reply.body.splitlines() if "running" not in line]
            reply.body = "\n".join(kept) + "\n"

    status, detail = judged(HttpMutant("no-gauges", row, "", on_reply=without), row)
    assert status is Status.BLOCKED
    assert "no gauge" in detail


def test_a_whole_answer_that_goes_on_is_seen() -> None:
    """The gauge stays where it is, and nothing is counted, as nothing was whole."""
    status, detail = judged_whole(lambda ask: add(ask, RUNNING, 1))
    assert status is Status.WARN
    assert "still runs" in detail


def test_a_stale_gauge_of_a_whole_answer_blames_nobody() -> None:
    """It still says that something runs, and no token is counted any more."""

    def stale(ask: Ask) -> None:
        add(ask, RUNNING, 1)
        add(ask, TOKENS, 5)

    status, detail = judged_whole(stale)
    assert status is Status.BLOCKED
    assert "out of date" in detail


def test_all_tokens_counted_is_no_evidence() -> None:
    """The server saw too late that its client had left, if it looked at all."""
    status, detail = judged_whole(lambda ask: add(ask, TOKENS, 4096))
    assert status is Status.BLOCKED
    assert "may have been whole" in detail


def test_an_answer_at_once_is_no_evidence() -> None:
    """Its client cannot leave in time."""

    def at_once(_: Ask, reply: Reply) -> None:
        reply.pauses = None

    status, detail = judged(HttpMutant("test", WHOLE, "", on_reply=at_once), WHOLE)
    assert status is Status.BLOCKED
    assert "whole before its client left" in detail


def test_an_answer_that_ends_by_itself_is_no_evidence() -> None:
    """Asked for again, with more time, it has no more tokens."""
    ends = itertools.cycle((False, True))

    def soon(_: Ask, reply: Reply) -> None:
        if reply.pauses is not None and next(ends):
            reply.pauses = None

    status, detail = judged(HttpMutant("test", WHOLE, "", on_reply=soon), WHOLE)
    assert status is Status.BLOCKED
    assert "may have been whole" in detail
