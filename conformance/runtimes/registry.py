"""Reads runtime profiles and checks them: against their schema, the contracts and each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any

from conformance.data import data_dir
from conformance.errors import ConfigError, unknown_name
from conformance.model.profile_file import read_table
from conformance.model.registry import Registry
from conformance.runtimes.contracts import http_registry
from conformance.runtimes.profile import (
    Capability,
    Deviation,
    Effect,
    Envelope,
    Framing,
    Reporter,
    Route,
    RuntimeProfile,
    State,
    Terminator,
    UsagePlace,
)
from conformance.runtimes.stream_error import StreamError, check_fields, check_routes

SCHEMA = "runtime.json"
PREFIX = "runtimes/"


@cache
def runtime_profiles() -> Mapping[str, RuntimeProfile]:
    """The shipped profiles by id (`llama-cpp@b10229`)."""
    return load_runtimes(data_dir("profiles") / "runtimes", http_registry())


def runtime_profile(name: str) -> RuntimeProfile:
    """The profile `runtimes/<name>@<build>`. Raises ConfigError for an unknown one, and for one
    without a build: two builds of a server are two servers.
    """
    known = runtime_profiles()
    wanted = name.removeprefix(PREFIX)
    if wanted not in known:
        raise unknown_name("runtime profile", PREFIX + wanted, [PREFIX + each for each in known])
    return known[wanted]


def load_runtimes(folder: Traversable, contracts: Registry) -> Mapping[str, RuntimeProfile]:
    """Read and check every `*.toml` of `folder`.

    Raises ConfigError naming the file, the place in it and what was expected.
    """
    found: dict[str, RuntimeProfile] = {}
    files = (file for file in folder.iterdir() if file.name.endswith(".toml"))
    for file in sorted(files, key=lambda file: file.name):
        profile = load_runtime(file, contracts)
        if profile.id in found:
            raise ConfigError(f"runtime {profile.id} is in two files", source=file.name)
        found[profile.id] = profile
    return MappingProxyType(found)


def load_runtime(file: Traversable, contracts: Registry) -> RuntimeProfile:
    """Read and check one file. Raises ConfigError."""
    table, digest = read_table(file, SCHEMA)
    head = table["runtime"]
    capabilities = [_capability(row) for row in table["capability"]]
    profile = RuntimeProfile(
        name=head["name"],
        build=head["build"],
        title=head["title"],
        tier=head["tier"],
        locality=tuple(head["locality"]),
        summary=head["summary"],
        envelope=Envelope(head["envelope"]),
        routes=tuple(_route(row) for row in table["route"]),
        capabilities=MappingProxyType({each.name: each for each in capabilities}),
        reporters=tuple(Reporter(**row) for row in table.get("identity", ())),
        deviations=tuple(Deviation(**row) for row in table.get("deviation", ())),
        limits=MappingProxyType(dict(table.get("limits", {}))),
        cancel=MappingProxyType(dict(table.get("cancel", {}))),
        sources=tuple(head["sources"]),
        source=file.name,
        digest=digest,
        stream_errors=tuple(_stream_error(row) for row in table.get("stream_error", ())),
    )
    _check(profile, [each.name for each in capabilities], contracts)
    return profile


def _route(row: dict[str, Any]) -> Route:
    terminator, usage = row.get("terminator"), row.get("usage")
    if terminator is not None:
        terminator = {**terminator, "values": tuple(terminator.get("values", ()))}
    return Route(
        name=row["name"],
        method=row["method"],
        path=row["path"],
        effect=Effect(row["effect"]),
        contract=row.get("contract", ""),
        unary=Framing(row.get("unary", "json")),
        stream=Framing(row.get("stream", "none")),
        terminator=None if terminator is None else Terminator(**terminator),
        usage=None if usage is None else UsagePlace(**usage),
        envelope=_envelope(row.get("envelope")),
        stream_envelope=_envelope(row.get("stream_envelope")),
        condition=row.get("condition", ""),
        evidence=row.get("evidence", ""),
        close_delimited=row.get("close_delimited", False),
    )


def _envelope(name: str | None) -> Envelope | None:
    return None if name is None else Envelope(name)


def _stream_error(row: dict[str, Any]) -> StreamError:
    return StreamError(**{**row, "fields": MappingProxyType(row["fields"])})


def _capability(row: dict[str, Any]) -> Capability:
    return Capability(
        name=row["name"],
        state=State(row["state"]),
        condition=row.get("condition", ""),
        when=row.get("when", ""),
        evidence=row.get("evidence", ""),
    )


def _check(profile: RuntimeProfile, capabilities: list[str], contracts: Registry) -> None:
    """What the schema cannot say: names that have to exist, be unique and agree."""
    source = profile.source
    if source != f"{profile.id}.toml":
        raise ConfigError("is in the wrong file", source=source, expected=f"{profile.id}.toml")
    _unique("route", [route.name for route in profile.routes], source)
    _unique("capability", capabilities, source)
    _unique("deviation", [each.requirement for each in profile.deviations], source)
    names = {contract.name for contract in contracts.profiles}
    for contract in sorted(profile.contracts - names):
        raise unknown_name("contract", contract, names, source=source)
    rows = [row for row in contracts.requirements() if row.profile in profile.contracts]
    for needed in sorted({row.capability for row in rows if row.capability}):
        if needed not in profile.capabilities:
            raise ConfigError(
                f"nothing is said of the capability {needed!r}",
                source=source,
                expected="a [[capability]] for each one that its contracts name",
            )
    for deviation in profile.deviations:
        if deviation.requirement not in {row.id for row in rows}:
            ids = [row.id for row in rows]
            raise unknown_name("requirement id", deviation.requirement, ids, source=source)
    _unique("stream_error", [each.route for each in profile.stream_errors], source)
    check_routes((each.route for each in profile.stream_errors), profile.streaming, source)
    for each in profile.stream_errors:
        check_fields(f"the stream_error of {each.route}", each.fields, source)
    for reporter in profile.reporters:
        if profile.route(reporter.route).effect is not Effect.NON_MUTATING:
            raise ConfigError(
                f"the identity is read from the route {reporter.route!r}",
                source=source,
                expected="a non-mutating route",
            )


def _unique(kind: str, names: Iterable[str], source: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigError(f"{kind} {name!r} is given twice", source=source, expected="once")
        seen.add(name)
