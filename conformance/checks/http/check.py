"""Makes checks of functions over an HttpProbe; what comes out is a Check like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hypothesis.strategies import SearchStrategy

from conformance.checks.check import Check
from conformance.checks.http.probe import HttpProbe
from conformance.model.case import Case
from conformance.runtimes.declared import HttpDeclared

HttpBody = Callable[[HttpProbe, Case], None]
HttpTable = Callable[[HttpDeclared], Iterable[Case]]
HttpStrategy = Callable[[HttpDeclared], SearchStrategy[Case]]

# Parameters that only the scripted model has a use for.
_SCRIPTED = frozenset({"script", "stop"})


def empty_case(_: HttpDeclared) -> Iterable[Case]:
    """The table of a check that sends nothing of its own choice."""
    return (Case(),)


def http_check(
    requirement: str,
    *,
    advice: str,
    table: HttpTable | None = None,
    strategy: HttpStrategy | None = None,
    waits: float = 0.0,
) -> Callable[[HttpBody], Check]:
    """Make a Check of a body; the arguments are those of conformance.checks.check.check."""

    def make(body: HttpBody) -> Check:
        module = body.__module__.removeprefix("conformance.checks.")
        cases = empty_case if table is None and strategy is None else table
        return Check(requirement, body, cases, strategy, advice, f"{module}.{body.__name__}", waits)

    return make


def params(*each: Mapping[str, object]) -> HttpTable:
    """A table of cases that differ in their parameters only. Those that differ in nothing but what
    the scripted model is asked are one case for any other model: it would be asked the same.
    """
    cases = tuple(Case(params=one) for one in each)
    others: dict[str, Case] = {}
    for case in cases:
        told = {name: value for name, value in case.params.items() if name not in _SCRIPTED}
        others.setdefault(repr(sorted(told.items())), case)
    return lambda declared: cases if declared.scripted else tuple(others.values())
