"""Runs the suite against each mutant: its own check must fail, and no unrelated one may."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.model.status import Status
from conformance.mutants.ended import whole
from conformance.mutants.methods import BOTH_INFOS, BOTH_MODEL_INFOS, CAPABILITIES
from conformance.mutants.mutant import Mutant
from conformance.mutants.proxy import proxied
from conformance.mutants.settings import settings_kept
from conformance.runner.budget import Budget
from conformance.runner.events import CheckFinished, RunEvent
from conformance.runner.report import Report
from conformance.runner.run import run
from conformance.runner.selection import Selection
from conformance.runner.session import Options, open_session
from conformance.wire.target import Target, parse_address

# A mutant is always wrong, so the first failing request is enough and needs no shrinking. Two
# cases of the table and a drawn one of every other check show that it keeps quiet: more than a
# hundred mutants times as many checks are an hour of two cores otherwise.
OWN = Budget("mutant", 12, 300, 40_000, 0, 2)
OTHERS = Budget("bystander", 1, 120, 20_000, 0, 2, table=2, restarts=False)
_BROKEN = frozenset({Status.FAIL, Status.FLAKY, Status.WARN, Status.ERROR})
# What a session asks before its checks: a lie there may change any of them.
_DETECTION = frozenset({CAPABILITIES, *BOTH_INFOS, *BOTH_MODEL_INFOS})


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


@dataclass(frozen=True, slots=True)
class Plain:
    """The engine behind a proxy without a mutant. broken: rows that break (id -> status and what
    was seen). methods: full names of the RPCs that each requirement's check calls.
    """

    broken: Mapping[str, str]
    methods: Mapping[str, frozenset[str]]

    def watching(self, mutant: Mutant) -> tuple[str, ...]:
        """Requirements whose checks could notice the mutant. The proxy forwards every other RPC
        byte by byte, so a check that calls none of the changed ones sees the plain engine.
        """
        changed = frozenset(mutant.behaviour)
        return tuple(
            requirement
            for requirement, called in self.methods.items()
            if changed & (called | _DETECTION)
        )


def run_matrix(
    target: Target,
    mutants: Sequence[Mutant],
    *,
    jobs: int = 1,
    own_only: bool = False,
    seed: int = 0,
    listener: Callable[[Trial], None] = lambda _: None,
) -> Matrix:
    """Try every mutant in front of a plaintext engine.

    own_only: run no check of another requirement; laws still judge the calls of the own one.
    listener: told each trial as it ends.
    """
    wanted = tuple(mutant.requirement for mutant in mutants) if own_only else ()
    plain = run_plain(target, jobs=jobs, seed=seed, ids=wanted)
    if plain.broken:
        return Matrix(plain.broken, ())
    trials = []
    for mutant in mutants:
        others = () if own_only else plain.watching(mutant)
        trial = try_mutant(target, mutant, others, jobs=jobs, seed=seed)
        listener(trial)
        trials.append(trial)
    return Matrix({}, tuple(trials))


def run_plain(
    target: Target,
    *,
    jobs: int = 1,
    seed: int = 0,
    ids: tuple[str, ...] = (),
    variant: Mutant | None = None,
) -> Plain:
    """What the checks say without a mutant. ids: only these requirements; empty = all. variant: a
    right engine that differs from the target.
    """
    methods: dict[str, frozenset[str]] = {}

    def note(event: RunEvent) -> None:
        match event:
            case CheckFinished(result):
                methods[result.judgement.requirement] = result.methods
            case _:
                return

    with proxied(target.address, variant) as front:
        report = whole(run(_options(target, front, OTHERS, jobs, seed, Selection(ids=ids)), note))
    return Plain(_broken(report), methods)


def try_mutant(
    target: Target, mutant: Mutant, others: Sequence[str] = (), *, jobs: int = 1, seed: int = 0
) -> Trial:
    """Run the mutant's own check against it, and those of the requirements `others`."""
    related = {mutant.requirement, *mutant.also}
    with settings_kept(target):
        with proxied(target.address, mutant) as front:
            status, detail, broken = _own(_options(target, front, OWN, 1, seed), mutant)
        ids = tuple(requirement for requirement in others if requirement not in related)
        broken |= _unrelated(target, mutant, ids, jobs, seed)
    collateral = {name: said for name, said in broken.items() if name not in related}
    return Trial(mutant, status, detail, collateral)


def _unrelated(
    target: Target, mutant: Mutant, ids: tuple[str, ...], jobs: int, seed: int
) -> dict[str, str]:
    """Which of these rows break, and again with nothing beside them: what only the noise of the
    others broke is no effect of the mutant.
    """
    broken: dict[str, str] = {}
    for at_once in (jobs, 1):
        if not ids:
            return {}
        with proxied(target.address, mutant) as front:
            options = _options(target, front, OTHERS, at_once, seed, Selection(ids=ids))
            broken = _broken(whole(run(options)))
        ids = tuple(broken)
    return broken


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
    target: Target,
    front: str,
    budget: Budget,
    jobs: int,
    seed: int,
    selection: Selection | None = None,
) -> Options:
    return Options(
        Target(parse_address(front), hooks=target.hooks),
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
