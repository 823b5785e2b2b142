"""Every mutant before the reference engine: its own check kills it and breaks no other law.

The checks of other requirements are run against a mutant by `oe-conform mutants`: seconds for
each mutant, against half a second for its own check.
"""

from __future__ import annotations

import pytest

from conformance.mutants.matrix import Plain, run_plain, try_mutant
from conformance.mutants.methods import ABORT, CAPABILITIES, CONTROL_HEALTH, GENERATE, WATCH
from conformance.mutants.mutant import Answers, Exchange, Mutant
from conformance.mutants.table import MUTANTS
from conformance.wire.target import Target

TRIES = 3


async def unchanged(exchange: Exchange) -> Answers:
    async for message in exchange.upstream():
        yield message


def test_plain_engine_passes(engine: Target) -> None:
    """Without a mutant no check of any requirement fails, so a failure is the mutant's doing."""
    broken = run_plain(engine, jobs=4).broken
    if broken:
        # Alone: rows about the order of things warn when other tests take the processors.
        broken = run_plain(engine, ids=tuple(broken)).broken
    assert broken == {}


def test_only_checks_that_could_notice_are_asked() -> None:
    """Those that call a changed RPC; all of them where the change reaches detection."""
    methods = {
        "A": frozenset({GENERATE}),
        "B": frozenset({GENERATE, ABORT}),
        "C": frozenset({WATCH}),
    }
    plain = Plain({}, methods)

    def watching(*changed: str) -> tuple[str, ...]:
        return plain.watching(Mutant("m", "A", "", dict.fromkeys(changed, unchanged)))

    assert watching(GENERATE) == ("A", "B")
    assert watching(ABORT) == ("B",)
    assert watching(CONTROL_HEALTH) == ()
    assert watching(CAPABILITIES) == ("A", "B", "C")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_killed(engine: Target, mutant: Mutant) -> None:
    """The check of the broken requirement fails, each time it is asked, and no other law does.

    Faults that lie in moments (a late answer, an aborted neighbour) can be missed or seen now and
    then while other tests take the processors: seen at a load of 36, in 10 of 351 mutants.
    """
    for _ in range(TRIES):
        trial = try_mutant(engine, mutant)
        if trial.killed and not trial.collateral:
            break
    assert trial.killed, f"{trial.own_status}: {trial.own_detail}"
    assert trial.collateral == {}
