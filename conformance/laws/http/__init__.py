"""The HTTP laws by requirement, and the judgement of one call by all that apply to it.

A module of this package with a tuple `LAWS` is found by itself.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from conformance.http.exchange import Exchange
from conformance.laws.http.law import HttpLaw, Ruling, http_table
from conformance.runtimes.declared import HttpDeclared


@cache
def http_laws() -> Mapping[str, HttpLaw]:
    """Every law, by requirement id. Raises ImportError for two laws of one requirement."""
    modules = [import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]
    return http_table(*(law for module in modules for law in getattr(module, "LAWS", ())))


def judge_exchange(exchange: Exchange, declared: HttpDeclared) -> dict[str, Ruling]:
    """The ruling of each law that applies to the call, by requirement id, ids in order."""
    laws = http_laws()
    return {
        requirement: laws[requirement].judge(exchange, declared)
        for requirement in sorted(laws)
        if laws[requirement].applies_to(exchange)
    }
