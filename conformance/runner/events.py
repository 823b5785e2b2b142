"""What a run tells while it goes on. Listeners draw progress; results come as one Report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.runner.opened import AnyDeclared
from conformance.runner.plan import Plan
from conformance.runner.result import CheckResult


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The target answered and the plan is made."""

    declared: AnyDeclared
    plan: Plan
    seed: int


@dataclass(frozen=True, slots=True)
class CheckStarted:
    """A worker took a requirement."""

    requirement: str


@dataclass(frozen=True, slots=True)
class CheckFinished:
    """A requirement is judged; laws broken in other checks' calls may still change it."""

    result: CheckResult


RunEvent = RunStarted | CheckStarted | CheckFinished
Listener = Callable[[RunEvent], None]


def nobody(_: RunEvent) -> None:
    """A listener that ignores everything."""
