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
from conformance.runner.session import Options, open_session
from conformance.wire.target import Target, parse_address

# A mutant is always wrong, so the first failing request is enough and needs no shrinking. Two
# cases of the table and a drawn one of every other check show that it keeps quiet: 127 mutants
# times a hundred checks are an hour of two cores otherwise.
OWN = Budget("mutant", 12, 300, 40_000, 0, 2)
OTHERS = Budget("bystander", 1, 120, 20_000, 0, 2, table=2)
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

    own_only: run no check of another requirement; laws still judge the calls of the own one.
    listener: told each trial as it ends.
    """
    wanted = tuple(mutant.requirement for mutant in mutants) if own_only else ()
    plain = plain_broken(address, jobs=jobs, seed=seed, ids=wanted)
    if plain:
        return Matrix(plain, ())
    trials = []
    for mutant in mutants:
        trial = try_mutant(address, mutant, jobs, own_only=own_only, seed=seed)
        listener(trial)
        trials.append(trial)
    return Matrix({}, tuple(trials))


def plain_broken(
    address: str, *, jobs: int = 1, seed: int = 0, ids: tuple[str, ...] = ()
) -> dict[str, str]:
    """Rows that break behind a proxy without a mutant (id -> status and what was seen).

    ids: only these requirements; empty = all.
    """
    with proxied(address, None) as front:
        return _broken(run(_options(front, OTHERS, jobs, seed, Selection(ids=ids))))


def try_mutant(
    address: str, mutant: Mutant, jobs: int = 1, *, own_only: bool = False, seed: int = 0
) -> Trial:
    """Run the mutant's own check against it, and the others unless `own_only`."""
    related = {mutant.requirement, *mutant.also}
    with proxied(address, mutant) as front:
        status, detail, broken = _own(_options(front, OWN, 1, seed), mutant)
    if not own_only:
        selection = Selection(excluded=tuple(sorted(related)))
        with proxied(address, mutant) as front:
            broken |= _broken(run(_options(front, OTHERS, jobs, seed, selection)))
    collateral = {name: said for name, said in broken.items() if name not in related}
    return Trial(mutant, status, detail, collateral)


def _own(options: Options, mutant: Mutant) -> tuple[Status, str, dict[str, str]]:
    """What the mutant's own check says, and which laws its calls broke (id -> what was seen)."""
    session = open_session(options)
    rows = {row.requirement.id: row for row in session.plan.rows}
    row = rows[mutant.requirement]
    if row.check is None:
        detail = row.detail or "there is no check"
        return row.status or Status.ERROR, detail, {}
    connection = session.connect()
    try:
        result = session.judge(row, row.check, connection)
    finally:
        connection.close()
    broken = {
        seen.requirement: f"in a call of its own check: {seen.actual}"
        for seen in result.bystanders
        if rows[seen.requirement].check is not None
    }
    return result.judgement.status, result.judgement.detail, broken


def _options(
    front: str, budget: Budget, jobs: int, seed: int, selection: Selection | None = None
) -> Options:
    return Options(
        Target(parse_address(front)),
        budget=budget,
        seed=seed,
        jobs=jobs,
        selection=Selection() if selection is None else selection,
    )


def _broken(report: Report) -> dict[str, str]:
    return {
        judgement.requirement: f"{judgement.status.value}: {judgement.detail}"
        for judgement in report.judgements
        if judgement.status in _BROKEN
    }
