"""A check: the code that judges one requirement, and the cases that it is run with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis.strategies import SearchStrategy

from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.wire.declared import Declared

Body = Callable[[Probe, Case], None]
Table = Callable[[Declared], Iterable[Case]]
Strategy = Callable[[Declared], SearchStrategy[Case]]


def one_case(_: Declared) -> Iterable[Case]:
    """The table of a check that sends nothing of its own choice."""
    return (Case(),)


@dataclass(frozen=True, slots=True)
class Check:
    """How one requirement is judged, over gRPC or HTTP: the probe and the declarations that it
    takes are those of its kind of target, which the decorator that made it has checked.

    body raises Violation when the requirement is broken and NotJudged when the case says nothing
    about it; returning means that it held. table: cases that are always run, in order. strategy:
    cases that Hypothesis draws after them, within the budget. advice: how an engine author mends
    a failure, one or two sentences. name: `module.function`, for people. waits: seconds that it
    mostly waits on a right engine; others run meanwhile.
    """

    requirement: str
    body: Callable[[Any, Case], None]
    table: Callable[[Any], Iterable[Case]] | None
    strategy: Callable[[Any], SearchStrategy[Case]] | None
    advice: str
    name: str
    waits: float = 0.0


def check(
    requirement: str,
    *,
    advice: str,
    table: Table | None = None,
    strategy: Strategy | None = None,
    waits: float = 0.0,
) -> Callable[[Body], Check]:
    """Make a Check of a body. Without table and strategy the body runs once, with an empty case."""

    def make(body: Body) -> Check:
        module = body.__module__.removeprefix("conformance.checks.")
        cases = one_case if table is None and strategy is None else table
        name = f"{module}.{body.__name__}"
        return Check(requirement, body, cases, strategy, advice, name, waits)

    return make
