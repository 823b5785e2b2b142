"""A faulty worker: which class is served, and which rule it breaks."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.mutants.worker.forwarder import RightForwarder
from conformance.mutants.worker.right import RightWorker


@dataclass(frozen=True, slots=True)
class WorkerMutant:
    """requirement: the row whose check must fail. story: the kind of bug it stands for. also:
    rows that the same fault breaks by necessity.
    """

    name: str
    requirement: str
    story: str
    worker: type[RightWorker] = RightWorker
    forwarder: type[RightForwarder] = RightForwarder
    also: frozenset[str] = frozenset()
