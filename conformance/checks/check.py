"""A check: the code that judges one requirement, and the cases that it is run with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

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
    """How one requirement is judged.

    body raises Violation when the requirement is broken and NotJudged when the case says nothing
    about it; returning means that it held. table: cases that are always run, in order. strategy:
    cases that Hypothesis draws after them, within the budget. advice: how an engine author mends
    a failure, one or two sentences. name: `module.function`, for people.
    """

    requirement: str
    body: Body
    table: Table | None
    strategy: Strategy | None
    advice: str
    name: str


def check(
    requirement: str,
    *,
    advice: str,
    table: Table | None = None,
    strategy: Strategy | None = None,
) -> Callable[[Body], Check]:
    """Make a Check of a body. Without table and strategy the body runs once, with an empty case."""

    def make(body: Body) -> Check:
        module = body.__module__.removeprefix("conformance.checks.")
        cases = one_case if table is None and strategy is None else table
        return Check(requirement, body, cases, strategy, advice, f"{module}.{body.__name__}")

    return make
