"""Every faulty server is killed by the check of the rule that it breaks.

That no other check notices is shown by `oe-conform mutants --http`: a second for each mutant.
"""

from __future__ import annotations

import pytest

from conformance.checks import http_checks
from conformance.mutants.http.chat_mutants import SHAPE
from conformance.mutants.http.fixture import fixture_profile, options_for
from conformance.mutants.http.matrix import plain_broken, try_http_mutant
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.server import serving
from conformance.mutants.http.table import http_mutants
from conformance.runner.budget import BUDGETS
from conformance.runner.run import run_http
from conformance.runtimes.contracts import http_registry


@pytest.mark.parametrize("scripted", [True, False])
def test_the_right_server_passes(scripted: bool) -> None:
    """Without a mutant nothing fails, whether the model is known or not."""
    assert plain_broken(scripted=scripted) == {}


@pytest.mark.parametrize("mutant", http_mutants(), ids=lambda mutant: mutant.name)
def test_mutant_is_killed(mutant: HttpMutant) -> None:
    """Its own check fails, each time it is asked."""
    trial = try_http_mutant(mutant, own_only=True)
    assert trial.killed, trial.own_detail
    assert trial.collateral == {}


def test_every_row_has_a_check_and_a_mutant() -> None:
    """As long as the fixture speaks the contract."""
    rows = [
        row for row in http_registry().requirements() if row.profile in fixture_profile().contracts
    ]
    mutated = {mutant.requirement for mutant in http_mutants()}
    assert [row.id for row in rows if row.id not in http_checks()] == []
    assert [row.id for row in rows if row.id not in mutated] == []


def test_a_search_finds_what_no_table_has() -> None:
    """Cases are drawn for HTTP checks too, shrunk, and replayed from what is stored."""

    def only_seven(json: dict[str, object], _: object) -> None:
        if json.get("max_tokens") == 7:
            json["max_tokens"] = 9

    mutant = SHAPE.mutant("seven", "cut", "Seven is nine.", on_ask=only_seven)
    with serving(mutant) as server:
        options = options_for(server.origin, ids=(mutant.requirement,), budget=BUDGETS["thorough"])
        report = run_http(options)
    failure = report.failure(mutant.requirement)
    assert failure is not None
    assert failure.case.params["max_tokens"] == 7
    assert failure.confirmed
