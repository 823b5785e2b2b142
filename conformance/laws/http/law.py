"""A law about one finished HTTP call, run on every call that any check makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.http.exchange import Exchange
from conformance.laws.law import Finding, Ruling
from conformance.runtimes.declared import HttpDeclared

__all__ = ["Finding", "HttpLaw", "Judge", "Ruling", "http_law", "http_table"]

Judge = Callable[[Exchange, HttpDeclared], Ruling]


@dataclass(frozen=True, slots=True)
class HttpLaw:
    """A rule for one requirement over calls of routes that promise one of `contracts` (empty =
    every call). judge returns True when it is kept, a Finding when it is broken, None when the
    precondition did not hold.
    """

    requirement: str
    judge: Judge
    contracts: frozenset[str]

    def applies_to(self, exchange: Exchange) -> bool:
        """Whether this law can judge the call."""
        return not self.contracts or exchange.contract in self.contracts


def http_law(requirement: str, *contracts: str) -> Callable[[Judge], HttpLaw]:
    """Make an HttpLaw of a function `(exchange, declared) -> True | Finding | None`."""

    def make(judge: Judge) -> HttpLaw:
        return HttpLaw(requirement, judge, frozenset(contracts))

    return make


def http_table(*laws: HttpLaw) -> Mapping[str, HttpLaw]:
    """Laws by requirement id; two laws for one requirement are an import error."""
    by_id: dict[str, HttpLaw] = {}
    for item in laws:
        if item.requirement in by_id:
            raise ImportError(f"two laws for {item.requirement}; a requirement has one")
        by_id[item.requirement] = item
    return by_id
