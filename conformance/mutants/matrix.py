"""Runs the suite against each mutant: its own check must fail, and no unrelated one may."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.model.status import Status
from conformance.mutants.mutant import Mutant
from conformance.mutants.proxy import proxied
from conformance.runner.budget import Budget
from conformance.runner.report import Report
from conformance.runner.run import run
from conformance.runner.selection import Selection
from conformance.runner.session import Options
from conformance.wire.target import Target, parse_address

# A mutant is always wrong, so the first failing request is enough and needs no shrinking. Two
# drawn cases of every other check show that it keeps quiet; more would cost hours, not proof.
OWN = Budget("mutant", 12, 300, 40_000, 0, 2)
OTHERS = Budget("bystander", 2, 120, 20_000, 0, 2)
_BROKEN = frozenset({Status.FAIL, Status.FLAKY, Status.WARN, Status.ERROR})


@dataclass(frozen=True, slots=True)
class Trial:
    """One mutant: what its own check said, and which unrelated rows broke (id -> detail)."""

    mutant: Mutant
    own_status: Status
    own_detail: str
    collateral: Mapping[str, str] = field(default_factory=dict)

    @property
    def killed(self) -> bool:
        """Whether the check of the broken requirement noticed, every time it was asked."""
        return self.own_status in {Status.FAIL, Status.WARN}


@dataclass(frozen=True, slots=True)
class Matrix:
    """plain_broken: rows that break without any mutant; then the trials prove nothing."""

    plain_broken: Mapping[str, str]
    trials: tuple[Trial, ...]


def run_matrix(
    address: str,
    mutants: Sequence[Mutant],
    *,
    jobs: int = 1,
    own_only: bool = False,
    seed: int = 0,
    listener: Callable[[Trial], None] = lambda _: None,
) -> Matrix:
    """Try every mutant in front of the plaintext engine at `address`.

    own_only: leave out the checks of other requirements. listener: told each trial as it ends.
    """
    wanted = tuple(mutant.requirement for mutant in mutants) if own_only else ()
    plain = _broken(_run(address, None, Selection(ids=wanted), OTHERS, jobs, seed))
    if plain:
        return Matrix(plain, ())
    trials = []
    for mutant in mutants:
        trial = _try(address, mutant, jobs, own_only=own_only, seed=seed)
        listener(trial)
        trials.append(trial)
    return Matrix({}, tuple(trials))


def _try(address: str, mutant: Mutant, jobs: int, *, own_only: bool, seed: int) -> Trial:
    own = _run(address, mutant, Selection(ids=(mutant.requirement,)), OWN, 1, seed)
    verdict = next(j for j in own.judgements if j.requirement == mutant.requirement)
    collateral: Mapping[str, str] = {}
    if not own_only:
        related = (mutant.requirement, *sorted(mutant.also))
        rest = _run(address, mutant, Selection(excluded=related), OTHERS, jobs, seed)
        collateral = _broken(rest)
    return Trial(mutant, verdict.status, verdict.detail, collateral)


def _run(
    address: str, mutant: Mutant | None, selection: Selection, budget: Budget, jobs: int, seed: int
) -> Report:
    with proxied(address, mutant) as front:
        return run(
            Options(
                Target(parse_address(front)),
                budget=budget,
                seed=seed,
                jobs=jobs,
                selection=selection,
            )
        )


def _broken(report: Report) -> dict[str, str]:
    return {
        judgement.requirement: f"{judgement.status.value}: {judgement.detail}"
        for judgement in report.judgements
        if judgement.status in _BROKEN
    }
