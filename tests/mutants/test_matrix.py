"""Every mutant before the reference engine: its own check kills it and breaks no other law.

The checks of other requirements are run against a mutant by `oe-conform mutants`: seconds for
each mutant, against half a second for its own check.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.model.status import SkipReason
from conformance.mutants import matrix
from conformance.mutants.matrix import Plain, run_plain, try_mutant
from conformance.mutants.methods import ABORT, CAPABILITIES, CONTROL_HEALTH, GENERATE, WATCH
from conformance.mutants.mutant import Answers, Exchange, Mutant
from conformance.mutants.table import MUTANTS
from conformance.runner.events import Listener, nobody
from conformance.runner.report import Report
from conformance.runner.run import run
from conformance.runner.selection import Selection
from conformance.runner.session import Options, open_session
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


def test_interrupted_run_is_no_trial(engine: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends the matrix: rows that were not run any more are not broken by a mutant."""

    def interrupted(options: Options, listener: Listener = nobody) -> Report:
        whole = run(replace(options, selection=Selection(ids=("OE-CORE-DISC-001",))), listener)
        return replace(whole, ended_early=SkipReason.INTERRUPTED)

    monkeypatch.setattr(matrix, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_plain(engine)
    with pytest.raises(KeyboardInterrupt):
        try_mutant(engine, MUTANTS[0], ("OE-CORE-DISC-001",))


def test_engine_keeps_its_settings(engine: Target) -> None:
    """A check that puts back what a mutant advertised leaves the next mutant the same engine."""
    lying = next(mutant for mutant in MUTANTS if mutant.name == "priority-refused")
    before = _priorities(engine)
    try_mutant(engine, lying, ("OE-CORE-CAP-014",))
    assert before
    assert _priorities(engine) == before


def _priorities(engine: Target) -> bool:
    """Whether the engine itself advertises priorities."""
    session = open_session(Options(engine, budget=matrix.OWN, seed=0))
    scope = session.declared.capabilities
    return scope is not None and scope.generation.supports_priority
