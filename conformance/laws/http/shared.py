"""Makes a law of one text API of a rule that both have."""

from __future__ import annotations

from collections.abc import Callable

from conformance.http.exchange import Exchange
from conformance.laws.http.law import HttpLaw, Ruling
from conformance.laws.http.view import Dialect
from conformance.runtimes.declared import HttpDeclared

Rule = Callable[[Exchange, Dialect], Ruling]


def law_of(requirement: str, rule: Rule, dialect: Dialect) -> HttpLaw:
    """A shared rule as a law of one API."""

    def judge(exchange: Exchange, _: HttpDeclared) -> Ruling:
        return rule(exchange, dialect)

    judge.__name__ = rule.__name__
    return HttpLaw(requirement, judge, frozenset({dialect.contract}))
