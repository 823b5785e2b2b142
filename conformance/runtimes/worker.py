"""The terms of a worker: what its contract leaves to the target's own file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from conformance.errors import ConfigError, unknown_name
from conformance.http.origin import parse_origin
from conformance.runtimes.profile import Effect, Envelope, Route, RuntimeProfile

CONTRACT = "systemone"
PREFIX = "workers/"
HEALTH = "health"
_SOURCE = "[worker]"


@dataclass(frozen=True, slots=True)
class WorkerTerms:
    """Paths of the routes; bytes of a request body; seconds from a request's headers to its
    answer; a header by which a caller asks for fewer, in milliseconds (empty: none). request: a
    body that the worker answers. stage_path: where the worker is put into states and tells its
    counts in a test run (empty: nowhere). forwarder: origin of a transport that forwards to the
    target (empty: none).
    """

    work_path: str = "/v1/systemone"
    health_path: str = "/health"
    body_limit: int = 1024 * 1024
    budget_seconds: float = 30.0
    budget_header: str = ""
    request: str = '{"kind":"yes_no","prompt":"Is two more than one?"}'
    stage_path: str = ""
    forwarder: str = ""


def read_terms(table: Any, source: str) -> WorkerTerms:
    """The terms in a `[worker]` table. Raises ConfigError naming the key and what was expected."""
    if not isinstance(table, dict):
        raise ConfigError("worker is no table", source=source, expected="[worker]")
    kinds = {field.name: type(field.default) for field in fields(WorkerTerms)}
    for name, value in table.items():
        if name not in kinds:
            raise unknown_name("key of [worker]", name, kinds, source=source)
        wanted: tuple[type, ...] = (int, float) if kinds[name] is float else (kinds[name],)
        if isinstance(value, bool) or not isinstance(value, wanted):
            names = " or ".join(each.__name__ for each in wanted)
            raise ConfigError(f"worker.{name} is {value!r}", source=source, expected=names)
    return _checked(WorkerTerms(**table), source)


def _checked(terms: WorkerTerms, source: str) -> WorkerTerms:
    for name in ("work_path", "health_path", "stage_path"):
        path = getattr(terms, name)
        if not path.startswith("/") and (path or name != "stage_path"):
            raise ConfigError(f"worker.{name} is {path!r}", source=source, expected="/a/path")
    for name in ("body_limit", "budget_seconds"):
        if getattr(terms, name) <= 0:
            value = getattr(terms, name)
            raise ConfigError(f"worker.{name} is {value}", source=source, expected="more than 0")
    if terms.forwarder:
        parse_origin(terms.forwarder)
    return terms


def worker_profile(terms: WorkerTerms) -> RuntimeProfile:
    """The terms in the shape that every HTTP target has: routes, and nothing claimed besides."""
    return RuntimeProfile(
        name=CONTRACT,
        build="1.0",
        title="worker",
        tier="declared by the operator",
        locality=(),
        summary="A worker behind the two routes of its contract.",
        envelope=Envelope.ERROR_STRING,
        routes=(
            Route(HEALTH, "GET", terms.health_path, Effect.NON_MUTATING),
            Route("work", "POST", terms.work_path, Effect.INFERENCE, CONTRACT),
        ),
        capabilities=MappingProxyType({}),
        reporters=(),
        deviations=(),
        limits=MappingProxyType({"request_bytes": terms.body_limit}),
        cancel=MappingProxyType({}),
        sources=(),
        source=_SOURCE,
        digest=hashlib.sha256(repr(terms).encode()).hexdigest(),
        common=False,
    )
