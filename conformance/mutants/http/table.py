"""Every mutant of the HTTP contracts: the modules of this package with a tuple `MUTANTS`."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from conformance.mutants import http
from conformance.mutants.http.mutant import HttpMutant


@cache
def http_mutants() -> tuple[HttpMutant, ...]:
    """All of them, in the order of their modules. Raises ImportError for two of one name."""
    names = [f"{http.__name__}.{each.name}" for each in pkgutil.iter_modules(http.__path__)]
    found = [
        mutant
        for name in names
        for mutant in getattr(import_module(name), "MUTANTS", ())
        if isinstance(mutant, HttpMutant)
    ]
    seen: set[str] = set()
    for mutant in found:
        if mutant.name in seen:
            raise ImportError(f"two mutants are called {mutant.name}")
        seen.add(mutant.name)
    return tuple(found)
