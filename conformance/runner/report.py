"""The outcome of a run as data: everything that a report writer may show."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import dataclass
from datetime import datetime

from conformance.model.profile import Profile
from conformance.model.verdict import Judgement, RunVerdict
from conformance.runner.baseline import Comparison, Known
from conformance.runner.clients import ClientResult
from conformance.runner.opened import AnyDeclared
from conformance.runner.plan import Plan
from conformance.runner.result import Failure


@dataclass(frozen=True, slots=True)
class Environment:
    """Versions that a verdict may depend on."""

    suite: str
    python: str
    grpcio: str
    protobuf: str
    hypothesis: str
    system: str


@dataclass(frozen=True, slots=True)
class Report:
    """One finished or stopped run.

    judgements: one per requirement of the plan that has a status, in plan order. failures: the
    evidence, by requirement id. unchecked: ids that apply and have no check. ended_early: why the
    run stopped before its end, empty when it did not. comparison: the run against a baseline.
    clients: what clients need besides, which no verdict rests on.

    On an HTTP target the comparison is with its runtime profile, and with a baseline if there is
    one.
    """

    address: str
    declared: AnyDeclared
    plan: Plan
    judgements: tuple[Judgement, ...]
    failures: tuple[Failure, ...]
    unchecked: tuple[str, ...]
    verdict: RunVerdict
    seed: int
    budget: str
    started: datetime
    seconds: float
    slow_factor: float
    environment: Environment
    ended_early: str = ""
    comparison: Comparison | None = None
    clients: tuple[ClientResult, ...] = ()

    def failure(self, requirement: str) -> Failure | None:
        """The evidence against one requirement."""
        return next((f for f in self.failures if f.requirement == requirement), None)

    def known(self, requirement: str) -> Known | None:
        """The baseline's entry that explains why this requirement fails, when one does."""
        return None if self.comparison is None else self.comparison.known.get(requirement)

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The judged profiles."""
        return self.plan.profiles


def environment() -> Environment:
    """The versions in this process."""

    def version(package: str) -> str:
        return importlib.metadata.version(package)

    return Environment(
        suite=version("oe-conform"),
        python=platform.python_version(),
        grpcio=version("grpcio"),
        protobuf=version("protobuf"),
        hypothesis=version("hypothesis"),
        system=f"{platform.system()} {platform.machine()}",
    )
