"""Runs the worker checks against each faulty worker: its own must fail, and no unrelated one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

from conformance.http.origin import parse_origin
from conformance.http.target import HttpTarget
from conformance.model.status import Status
from conformance.mutants.ended import whole
from conformance.mutants.worker import accounts, statuses
from conformance.mutants.worker.mutant import WorkerMutant
from conformance.mutants.worker.right import (
    BODY_LIMIT,
    BUDGET_HEADER,
    BUDGET_SECONDS,
    HEALTH,
    STAGE,
    WORK,
)
from conformance.mutants.worker.server import served
from conformance.runner.budget import Budget
from conformance.runner.http_session import HttpOptions
from conformance.runner.report import Report
from conformance.runner.run import run_http
from conformance.runner.selection import Selection
from conformance.runtimes.worker import WorkerTerms, worker_profile

WORKER_MUTANTS: tuple[WorkerMutant, ...] = (*statuses.MUTANTS, *accounts.MUTANTS)
RIGHT = WorkerMutant("worker_right", "", "A right worker: every check must pass.")
# One failing case is enough, as in conformance.mutants.matrix.
OWN = Budget("mutant", 0, 120, 20_000, 0, 2)
OTHERS = Budget("bystander", 0, 120, 20_000, 0, 2, table=2)
# What a faulty worker never does need not be awaited for as long as a slow one deserves.
_IMPATIENT = 0.2
_BROKEN = frozenset({Status.FAIL, Status.FLAKY, Status.WARN, Status.ERROR})


@dataclass(frozen=True, slots=True)
class WorkerTrial:
    """One faulty worker: what its own check said, and which unrelated rows broke (id -> what)."""

    mutant: WorkerMutant
    own_status: Status
    own_detail: str
    collateral: Mapping[str, str] = field(default_factory=dict)

    @property
    def killed(self) -> bool:
        """Whether the check of the broken row noticed, every time it was asked."""
        return self.own_status is Status.FAIL


@contextmanager
def faulty(mutant: WorkerMutant) -> Iterator[HttpOptions]:
    """The faulty worker and a forwarder in front of it, served while the block runs; yields how
    to judge them.
    """
    with (
        closing(mutant.worker()) as worker,
        served(worker) as origin,
        served(mutant.forwarder(origin)) as front,
    ):
        terms = WorkerTerms(
            work_path=WORK,
            health_path=HEALTH,
            body_limit=BODY_LIMIT,
            budget_seconds=BUDGET_SECONDS,
            budget_header=BUDGET_HEADER,
            stage_path=STAGE,
            forwarder=front,
        )
        yield HttpOptions(
            HttpTarget(parse_origin(origin)),
            worker_profile(terms),
            worker=terms,
            budget=OWN,
            seed=0,
        )


def try_worker(mutant: WorkerMutant, *, own_only: bool = False) -> WorkerTrial:
    """Run the check of the broken rule against a faulty worker, and unless own_only every other
    one.
    """
    related = {mutant.requirement, *mutant.also}
    with faulty(mutant) as options:
        selection = Selection(ids=(mutant.requirement,))
        own = whole(run_http(replace(options, selection=selection, slow_factor=_IMPATIENT)))
    [judged] = [each for each in own.judgements if each.requirement == mutant.requirement]
    collateral: dict[str, str] = {}
    if not own_only:
        rest = Selection(excluded=tuple(sorted(related)))
        with faulty(mutant) as options:
            collateral = broken(whole(run_http(replace(options, selection=rest, budget=OTHERS))))
    return WorkerTrial(mutant, judged.status, judged.detail, collateral)


def plain_worker_broken() -> dict[str, str]:
    """What the right worker breaks: nothing, or the trials prove nothing."""
    with faulty(RIGHT) as options:
        return broken(whole(run_http(options)))


def broken(report: Report) -> dict[str, str]:
    """The rows that do not hold (id -> status and what was seen)."""
    return {
        judgement.requirement: f"{judgement.status.value}: {judgement.detail}"
        for judgement in report.judgements
        if judgement.status in _BROKEN
    }
