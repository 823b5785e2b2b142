"""The HTTP contracts: requirement sets as the other profiles are, in a registry of their own."""

from __future__ import annotations

from functools import cache
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any

from conformance.data import data_dir
from conformance.errors import ConfigError
from conformance.model.profile import Profile
from conformance.model.profile_file import read_table
from conformance.model.registry import Registry
from conformance.model.requirement import Level, Need, Requirement

SCHEMA = "contract.json"
FOLDERS = ("http", "workers")


@cache
def http_registry() -> Registry:
    """The shipped contracts, loaded once."""
    root = data_dir("profiles")
    return load_contracts([root / name for name in FOLDERS])


def load_contracts(folders: list[Traversable]) -> Registry:
    """Read and check every `*.toml` of the folders (one that is not there is empty).

    Raises ConfigError naming the file, the place in it and what was expected.
    """
    files = [
        file
        for folder in folders
        if folder.is_dir()
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".toml")
    ]
    profiles = tuple(_contract(file) for file in files)
    by_id: dict[str, Requirement] = {}
    for profile in profiles:
        for row in profile.requirements:
            if row.id in by_id:
                raise ConfigError(f"id {row.id} is given twice", source=profile.source)
            by_id[row.id] = row
    return Registry(profiles, MappingProxyType(by_id))


def _contract(file: Traversable) -> Profile:
    table, digest = read_table(file, SCHEMA)
    head = table["contract"]
    rows = tuple(_requirement(row, head["name"]) for row in table["requirement"])
    for row in rows:
        if row.group not in head["id_prefixes"]:
            expected = " or ".join(f"{prefix}-nnn" for prefix in head["id_prefixes"])
            raise ConfigError(f"id {row.id!r}", source=file.name, expected=expected)
    return Profile(
        name=head["name"],
        major=head["major"],
        minor=head["minor"],
        stage=head["stage"],
        summary=head["summary"],
        roles=(),
        capability="",
        health_services=(),
        prerequisites=(),
        features=(),
        incompatible=(),
        id_prefixes=tuple(head["id_prefixes"]),
        messages=(),
        services=(),
        capabilities=(),
        requirements=rows,
        source=file.name,
        digest=digest,
    )


def _requirement(row: dict[str, Any], contract: str) -> Requirement:
    return Requirement(
        id=row["id"],
        profile=contract,
        level=Level(row["level"]),
        text=row["text"],
        sources=tuple(row["sources"]),
        needs=frozenset(Need(need) for need in row.get("needs", ())),
        capability=row.get("capability", ""),
    )
