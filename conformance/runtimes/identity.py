"""What a server says about itself; what an operator configured is never called reported."""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from conformance.http.client import HttpConnection
from conformance.http.exchange import Exchange, Request
from conformance.http.limits import Limits
from conformance.runtimes.declared import HttpDeclared
from conformance.runtimes.profile import Effect, Route

BUILD, MODEL = "build", "model"
MODELS = "openai-models"  # contract of the route that lists models


def observe(
    connection: HttpConnection, declared: HttpDeclared, limits: Limits | None = None
) -> HttpDeclared:
    """Read build and model from routes without effect, as far as the profile says where. The
    model under test becomes the first one listed, when the operator named none.
    """
    found: dict[str, str] = {}
    runtime = declared.runtime
    for reporter in runtime.reporters:
        value = at_pointer(
            _get(connection, runtime.route(reporter.route), limits), reporter.pointer
        )
        if isinstance(value, str) and re.search(reporter.pattern, value):
            found.setdefault(BUILD, value)
    listing = runtime.of_contract(MODELS) or next(
        (route for route in runtime.routes if route.name == "models"), None
    )
    if listing is not None and listing.effect is Effect.NON_MUTATING:
        listed = at_pointer(_get(connection, listing, limits), "/data/0/id")
        if isinstance(listed, str):
            found[MODEL] = listed
    model = declared.model_name or found.get(MODEL, "")
    return replace(declared, model_name=model, observed=MappingProxyType(found))


def at_pointer(value: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901); None where there is none."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _get(connection: HttpConnection, route: Route, limits: Limits | None) -> Any:
    seen: Exchange = connection.finish(
        connection.start(Request(route.method, route.path), route=route.name, limits=limits)
    )
    return seen.json if seen.ok else None
