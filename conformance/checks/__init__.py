"""Checks: the code that judges requirements. `all_checks` gives every one by requirement id."""

from __future__ import annotations

import pkgutil
from collections.abc import Container, Iterable, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType, ModuleType

from conformance.checks.check import Check
from conformance.model.client import client_set
from conformance.model.registry import default_registry
from conformance.runtimes.contracts import http_registry

PACKAGES = (
    "conformance.checks.admin",
    "conformance.checks.core",
    "conformance.checks.scheduling_load",
    "conformance.checks.testing",
)
HTTP_PACKAGES = ("conformance.checks.http", "conformance.checks.worker")


@cache
def all_checks() -> Mapping[str, Check]:
    """Every check of the suite: those in the modules of PACKAGES.

    Raises ImportError as `collect` does, for the ids of the shipped profiles.
    """
    modules = [module for package in PACKAGES for module in _modules(package)]
    return collect(default_registry().by_id, modules)


@cache
def http_checks() -> Mapping[str, Check]:
    """Every check of the HTTP contracts: those in the modules of HTTP_PACKAGES.

    Raises ImportError as `collect` does, for the ids of the shipped contracts.
    """
    modules = [module for package in HTTP_PACKAGES for module in _modules(package)]
    return collect(http_registry().by_id, modules)


@cache
def client_checks(client: str) -> Mapping[str, Check]:
    """Every check of what one client needs; no profile has them.

    Raises ConfigError for an unknown client and ImportError as `collect` does.
    """
    known = {need.id for need in client_set(client).needs}
    return collect(known, _modules(f"conformance.checks.client_{client}"))


def _modules(package: str) -> list[ModuleType]:
    found = pkgutil.iter_modules(import_module(package).__path__)
    return [import_module(f"{package}.{module.name}") for module in found]


def collect(known: Container[str], modules: Iterable[ModuleType]) -> Mapping[str, Check]:
    """The checks that are attributes of `modules`, by requirement id.

    Raises ImportError for a check of an id that is not in `known` and for two checks of one id.
    """
    found: dict[str, Check] = {}
    for module in modules:
        for item in _checks_of(module):
            if item.requirement not in known:
                raise ImportError(f"check {item.name} is for {item.requirement}: no such id")
            other = found.setdefault(item.requirement, item)
            if other is not item:
                raise ImportError(
                    f"checks {other.name} and {item.name} are both for {item.requirement}"
                )
    return MappingProxyType(found)


def _checks_of(module: ModuleType) -> Iterable[Check]:
    for value in vars(module).values():
        if isinstance(value, Check):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Check))
