"""What one client demands of an engine: an advisory set of needs, apart from every profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any

from conformance.data import data_dir
from conformance.errors import ConfigError, unknown_name
from conformance.model.applicability import Applicability, condition
from conformance.model.expression import parse
from conformance.model.facts import Facts
from conformance.model.profile_file import read_table
from conformance.model.requirement import Level, Need, Requirement

SCHEMA = "client.json"


class Otherwise(StrEnum):
    """What the client does with an engine that does not meet a need."""

    REFUSED = "refused"  # it is not used at all
    FATAL = "fatal"  # the stream fails, or the worker goes down
    DEGRADED = "degraded"  # something is not used or not known


@dataclass(frozen=True, slots=True)
class ClientSet:
    """The needs of one client. `digest` is the sha256 (hex) of the bytes of the file `source`.

    needs: as requirements, so that a check can judge them; their profile is `client_<name>`.
    otherwise: the consequence of each, by id.
    """

    name: str
    version: str
    summary: str
    needs: tuple[Requirement, ...]
    otherwise: Mapping[str, Otherwise]
    source: str
    digest: str

    @property
    def title(self) -> str:
        """Name and version: `dynamo 1.0`."""
        return f"{self.name} {self.version}"


def concerns(need: Requirement, facts: Facts) -> Applicability:
    """Whether the need is about this target. Advertised profiles do not matter to a client."""
    return condition(need, facts)


@cache
def client_sets() -> Mapping[str, ClientSet]:
    """The shipped sets by name."""
    return load_client_sets(data_dir("profiles") / "clients")


def client_set(name: str) -> ClientSet:
    """The set of this client. Raises ConfigError for an unknown one."""
    sets = client_sets()
    if name not in sets:
        raise unknown_name("client", name, sets)
    return sets[name]


def load_client_sets(folder: Traversable) -> Mapping[str, ClientSet]:
    """Read and check every `*.toml` of `folder`.

    Raises ConfigError naming the file, the place in it and what was expected.
    """
    found: dict[str, ClientSet] = {}
    files = (file for file in folder.iterdir() if file.name.endswith(".toml"))
    for file in sorted(files, key=lambda file: file.name):
        loaded = _load(file)
        if loaded.name in found:
            raise ConfigError(f"client {loaded.name!r} is in two files", source=file.name)
        found[loaded.name] = loaded
    return MappingProxyType(found)


def _load(file: Traversable) -> ClientSet:
    table, digest = read_table(file, SCHEMA)
    head, rows = table["client"], table["need"]
    prefix = head["id_prefix"]
    needs = tuple(_need(row, head["name"], file.name) for row in rows)
    ids = [need.id for need in needs]
    for each in ids:
        if ids.count(each) > 1 or each.rpartition("-")[0] != prefix:
            raise ConfigError(
                f"id {each!r}", source=file.name, where="need", expected=f"{prefix}-nnn, each once"
            )
    return ClientSet(
        name=head["name"],
        version=head["version"],
        summary=head["summary"],
        needs=needs,
        otherwise={row["id"]: Otherwise(row["otherwise"]) for row in rows},
        source=file.name,
        digest=digest,
    )


def _need(row: Mapping[str, Any], client: str, source: str) -> Requirement:
    try:
        applies = parse(row.get("applies", ""))
    except ConfigError as error:
        raise ConfigError(
            error.problem, source=source, where=f"need {row['id']}", expected=error.expected
        ) from error
    return Requirement(
        id=row["id"],
        profile=f"client_{client}",
        level=Level.MUST,
        text=row["text"],
        sources=("D",),
        applies=applies,
        needs=frozenset(Need(need) for need in row.get("needs", ())),
    )
