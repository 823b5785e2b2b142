"""A request that is known to fail inside a stream: without one, errors there are never seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from conformance.errors import ConfigError, unknown_name

TABLE = "stream_errors"  # of the settings file: what an operator knows to fail, by route

# What every such request says already, and what decides which route and model it is about.
_FIXED = ("model", "stream")


@dataclass(frozen=True, slots=True)
class StreamError:
    """fields: what an ordinary streaming request of the route is given instead of its own.
    scripted: only the scripted model fails so. condition: must be stated, empty for none.
    evidence: how it is known.
    """

    route: str
    fields: Mapping[str, Any]
    evidence: str
    scripted: bool = False
    condition: str = ""


def read_stream_errors(table: Any, source: str) -> Mapping[str, Mapping[str, Any]]:
    """The fields by route in a settings file; which routes there are, only the runtime's profile
    knows. Raises ConfigError.
    """
    if not isinstance(table, dict):
        raise ConfigError(f"{TABLE} is no table", source=source, expected=f"[{TABLE}.ROUTE]")
    for route, fields in table.items():
        name = f"{TABLE}.{route}"
        if not isinstance(fields, dict) or not fields:
            raise ConfigError(
                f"{name} has no fields", source=source, expected="the fields of a request"
            )
        check_fields(name, fields, source)
    return MappingProxyType({name: MappingProxyType(fields) for name, fields in table.items()})


def check_fields(name: str, fields: Mapping[str, Any], source: str) -> None:
    """Raises ConfigError for a field that such a request cannot change."""
    for field in fields:
        if field in _FIXED:
            raise ConfigError(f"{name} sets {field!r}", source=source, expected="another field")


def check_routes(given: Iterable[str], streaming: Iterable[str], source: str) -> None:
    """Raises ConfigError for a route that is not there, or has no streams."""
    known = list(streaming)
    for route in given:
        if route not in known:
            raise unknown_name("streaming route", route, known, source=source)
