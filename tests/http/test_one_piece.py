"""Answers that nobody asked to be streams: absent and false are both judged."""

from __future__ import annotations

import pytest

from conformance.model.status import Status
from conformance.mutants.http.ask import Ask
from conformance.mutants.http.fixture import options_for
from conformance.mutants.http.matrix import BUDGET
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.server import serving
from conformance.runner.run import run_http

ROWS = ("OE-HTTP-CHAT-036", "OE-HTTP-COMP-033", "OE-HTTP-RESP-021")


def _by_presence(ask: Ask) -> None:
    """The field counts as a wish, whatever its value."""
    if ask.json is not None and "stream" in ask.json:
        ask.json["stream"] = True


@pytest.mark.parametrize("row", ROWS)
def test_false_is_no_wish_for_a_stream(row: str) -> None:
    """A server that is right when the field is absent is still asked with false."""
    with serving(HttpMutant("test", row, "", on_ask=_by_presence)) as server:
        report = run_http(options_for(server.origin, budget=BUDGET, ids=(row,)))
    (found,) = [each for each in report.judgements if each.requirement == row]
    assert found.status is Status.FAIL
    failure = report.failure(row)
    assert failure is not None
    assert failure.case.params == {"stream": False}
