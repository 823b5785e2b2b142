"""Runs the suite against each faulty server: its own check fails, and no unrelated one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.model.status import Status
from conformance.mutants.ended import whole
from conformance.mutants.http.fixture import options_for
from conformance.mutants.http.mutant import HttpMutant
from conformance.mutants.http.server import serving
from conformance.runner.budget import Budget
from conformance.runner.run import run_http

# All tables whole: they are short, and a call takes milliseconds here.
BUDGET = Budget("mutant", 4, 200, 40_000, 0, 2)
_BROKEN = frozenset({Status.FAIL, Status.FLAKY, Status.WARN, Status.ERROR})
# A server that hangs on purpose is given up soon (seconds).
PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class HttpTrial:
    """One mutant: what its own check said, and which unrelated rows broke (id -> detail)."""

    mutant: HttpMutant
    own_status: Status
    own_detail: str
    collateral: Mapping[str, str]

    @property
    def killed(self) -> bool:
        """Whether the check of the broken requirement noticed, every time it was asked."""
        return self.own_status in {Status.FAIL, Status.WARN}


def plain_broken(*, scripted: bool = True) -> Mapping[str, str]:
    """Rows that the right server breaks: none, or no trial proves anything."""
    return {name: said for name, (_, said) in _broken(None, scripted=scripted).items()}


def try_http_mutant(mutant: HttpMutant, *, own_only: bool = False) -> HttpTrial:
    """Run every check against one mutant. own_only: run its own check alone, whose calls all laws
    still judge. An unrelated row counts as broken when it breaks in a second run too: on a busy
    machine a server may just be late.
    """
    ids = (mutant.requirement,) if own_only else ()
    broken = _broken(mutant, scripted=mutant.scripted, ids=ids)
    status, detail = broken.pop(mutant.requirement, (Status.PASS, "it held"))
    collateral = {name: said for name, (_, said) in broken.items() if name not in mutant.also}
    if collateral:
        again = _broken(mutant, scripted=mutant.scripted, ids=ids)
        collateral = {name: said for name, said in collateral.items() if name in again}
    return HttpTrial(mutant, status, detail, collateral)


def run_http_matrix(
    mutants: Sequence[HttpMutant],
    listener: Callable[[HttpTrial], None] = lambda _: None,
    *,
    own_only: bool = False,
) -> tuple[HttpTrial, ...]:
    """Try every mutant. listener: told each trial as it ends."""
    trials = []
    for mutant in mutants:
        trial = try_http_mutant(mutant, own_only=own_only)
        listener(trial)
        trials.append(trial)
    return tuple(trials)


def _broken(
    mutant: HttpMutant | None, *, scripted: bool, ids: tuple[str, ...] = ()
) -> dict[str, tuple[Status, str]]:
    with serving(mutant) as server:
        options = options_for(server.origin, scripted=scripted, budget=BUDGET, ids=ids)
        limits = options.limits.within(PATIENCE)
        report = whole(run_http(replace(options, limits=limits)))
    return {
        judgement.requirement: (judgement.status, f"{judgement.status.value}: {judgement.detail}")
        for judgement in report.judgements
        if judgement.status in _BROKEN
    }
