"""Long streams that checks leave: they fit the context, and one that is refused proves nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from conformance.model.status import Status
from conformance.mutants.http.ask import CONTEXT_TOKENS, Ask
from conformance.mutants.http.fixture import options_for
from conformance.mutants.http.matrix import BUDGET, PATIENCE
from conformance.mutants.http.mutant import Change, HttpMutant
from conformance.mutants.http.observing import METRICS, RUNNING
from conformance.mutants.http.reply import Event, RefusedError, Reply
from conformance.mutants.http.server import serving
from conformance.runner.run import run_http

LEFT, BUSY = "OE-HTTP-CANCEL-001", "OE-HTTP-PROBE-007"
LOOKS = 3


def judged(row: str, change: Change) -> tuple[Status, str]:
    """What a row says of the fixture with a change."""
    with serving(HttpMutant("test", row, "", on_reply=change)) as server:
        options = options_for(server.origin, budget=BUDGET, ids=(row,))
        report = run_http(replace(options, limits=options.limits.within(PATIENCE)))
    (found,) = [each for each in report.judgements if each.requirement == row]
    return found.status, found.detail


def limit_of(ask: Ask) -> int:
    """The most tokens that a request asks for."""
    json = ask.json or {}
    return max(int(json.get(name) or 0) for name in ("max_tokens", "max_output_tokens"))


@pytest.mark.parametrize("row", [LEFT, BUSY])
def test_they_fit_a_stated_context(row: str) -> None:
    """A server that refuses what cannot fit is judged all the same."""

    def strict(ask: Ask, _: Reply) -> Reply | None:
        fits = limit_of(ask) < CONTEXT_TOKENS
        return None if fits else RefusedError(400, "it does not fit").reply

    assert judged(row, strict) == (Status.PASS, "")


@pytest.mark.parametrize("row", [LEFT, BUSY])
def test_a_refused_one_is_no_evidence(row: str) -> None:
    """Nothing has begun, so nothing was asked beside it, and nothing was left."""

    def refuses(ask: Ask, _: Reply) -> Reply | None:
        return RefusedError(400, "too long").reply if limit_of(ask) > 64 else None

    status, detail = judged(row, refuses)
    assert status is Status.BLOCKED
    assert "refused with status 400" in detail


def test_a_gauge_that_follows_late_is_waited_for() -> None:
    """Some looks at the metrics after a stream has begun show nothing of it yet."""
    shown = threading.Event()
    looks = 0

    def held(events: Iterator[Event]) -> Iterator[Event]:
        """A stream that goes on when a look has shown it, so that it is not over before."""
        nonlocal looks
        looks = 0
        shown.clear()
        for number, event in enumerate(events):
            if number == 4:
                shown.wait(PATIENCE)
            yield event

    def late(ask: Ask, reply: Reply) -> None:
        nonlocal looks
        if reply.events is not None:
            reply.events = held(reply.events)
        elif ask.path == METRICS and ask.state.get(RUNNING, 0) > 0:
            looks += 1
            if looks > LOOKS:
                shown.set()
                return
            lines = str(reply.body).splitlines()
            kept = [line for line in lines if RUNNING not in line or line.startswith("#")]
            reply.body = "\n".join(kept) + "\n"

    assert judged(LEFT, late) == (Status.PASS, "")
