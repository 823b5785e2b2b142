"""Right engines that advertise more than the suite knows must not be called wrong."""

from __future__ import annotations

import pytest

from conformance.model.status import Status
from conformance.mutants.beside import RIGHT
from conformance.mutants.matrix import run_plain, try_mutant
from conformance.mutants.mutant import Mutant
from conformance.wire.target import Target

# What more in the profiles could touch: capabilities, discovery, health, versions and aliases.
TOUCHED = (
    "OE-CORE-CAP-*",
    "OE-CORE-DISC-*",
    "OE-CORE-HEALTH-00*",
    "OE-CORE-HEALTH-019",
    "OE-CORE-COMPAT-*",
    "OE-CORE-ENUM-*",
    "OE-PROF-*",
)


@pytest.mark.parametrize("variant", RIGHT, ids=lambda variant: variant.name)
def test_a_right_engine_stays_green(engine: Target, variant: Mutant) -> None:
    """The row that it is about passes in full, and its neighbours notice nothing wrong."""
    trial = try_mutant(engine, variant)
    assert (trial.own_status, trial.own_detail) == (Status.PASS, "")
    assert trial.collateral == {}
    assert run_plain(engine, jobs=4, ids=TOUCHED, variant=variant).broken == {}
