"""Native routes: the right server passes, and each mutant is killed by its own check alone."""

from __future__ import annotations

import pytest

from conformance.checks import http_checks
from conformance.model.status import Status
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.native.matrix import (
    CONTRACTS,
    native_statuses,
    try_native_mutant,
)
from conformance.mutants.http.native.mutants import NATIVE_MUTANTS
from conformance.runtimes.contracts import http_registry

ROWS = [row.id for row in http_registry().requirements() if row.profile in CONTRACTS]
# What can only be asked of a model whose answers are known.
SCRIPTED_ONLY = dict.fromkeys(
    (f"OE-HTTP-{rest}" for rest in ("OLLAMA-010", "OLLAMA-011", "OLLAMA-012", "TGI-007")),
    Status.BLOCKED,
) | dict.fromkeys(
    (f"OE-HTTP-{rest}" for rest in ("OLLAMA-015", "TGI-010", "LMS-009")), Status.HOOK_MISSING
)


def test_the_right_server_passes() -> None:
    """Every row of the three contracts holds."""
    statuses = native_statuses()
    assert sorted(statuses) == sorted(ROWS)
    assert {name: said for name, said in statuses.items() if said[0] is not Status.PASS} == {}


def test_an_unknown_model_is_judged_as_far_as_it_can_be() -> None:
    """Nothing fails; what needs the script says so."""
    statuses = native_statuses(scripted=False)
    others = {name: said for name, (said, _) in statuses.items() if said is not Status.PASS}
    assert others == SCRIPTED_ONLY


@pytest.mark.parametrize("mutant", NATIVE_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_killed(mutant: HttpMutant) -> None:
    """By its own check, and no unrelated one notices."""
    trial = try_native_mutant(mutant)
    assert trial.killed, trial.own_detail
    assert trial.collateral == {}


def test_every_row_has_a_check_and_a_mutant() -> None:
    """None is only text."""
    mutated = {mutant.requirement for mutant in NATIVE_MUTANTS}
    assert [row for row in ROWS if row not in http_checks() or row not in mutated] == []
