"""Every mutant before the reference engine: its own check kills it and breaks no other law.

The checks of other requirements are run against a mutant by `oe-conform mutants`: about ten
seconds for each mutant, against half a second for its own check.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.mutants.matrix import plain_broken, try_mutant
from conformance.mutants.mutant import Mutant
from conformance.mutants.table import MUTANTS
from conformance.runner.local_engine import local_engine


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """The address of one engine for all mutants."""
    with local_engine("tiny") as address:
        yield address


def test_plain_engine_passes(engine: str) -> None:
    """Without a mutant no check of any requirement fails, so a failure is the mutant's doing."""
    assert plain_broken(engine, jobs=4) == {}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_killed(engine: str, mutant: Mutant) -> None:
    """The check of the broken requirement fails, each time it is asked."""
    trial = try_mutant(engine, mutant, own_only=True)
    assert trial.killed, f"{trial.own_status}: {trial.own_detail}"
    assert trial.collateral == {}
