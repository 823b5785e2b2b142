"""Requirements, checks and mutants of one side: the gRPC profiles, or the HTTP contracts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.checks import all_checks, http_checks
from conformance.checks.check import Check
from conformance.model.registry import Registry, default_registry
from conformance.mutants.http.native.mutants import NATIVE_MUTANTS
from conformance.mutants.http.table import http_mutants
from conformance.mutants.table import MUTANTS
from conformance.mutants.worker.matrix import WORKER_MUTANTS
from conformance.runtimes.contracts import http_registry

_HTTP_IDS = ("OE-HTTP-", "OE-WORK-")
# Where a requirement comes from; the letters of the profile files.
_GRPC_SOURCES = {
    "P": "profile proposal",
    "O": "orchestration contract",
    "U": "upstream API text",
    "H": "an earlier upstream draft",
    "G": "gRPC health checking protocol",
    "W": "W3C trace context",
    "D": "decided by this project",
}
_HTTP_SOURCES = {
    "A": "OpenAI API reference",
    "S": "server-sent events of the HTML standard",
    "R": "RFC 9110 and RFC 9112",
    "J": "RFC 8259",
    "N": "the server's own documentation",
    "W": "worker contract",
    "D": "decided by this project",
}


@dataclass(frozen=True, slots=True)
class Killer:
    """A mutant, whatever it is a mutant of."""

    requirement: str
    name: str
    story: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """One side. sources: what the letters of its files stand for."""

    registry: Registry
    checks: Mapping[str, Check]
    killers: tuple[Killer, ...]
    sources: Mapping[str, str]

    def source(self, written: str) -> str:
        """A source in words; a link as it is."""
        return self.sources.get(written, written)


def catalogue(*, http: bool) -> Catalogue:
    """The catalogue of the HTTP contracts, or of the gRPC profiles."""
    if http:
        faulty = (*http_mutants(), *NATIVE_MUTANTS)
        killers = tuple(Killer(each.requirement, each.name, each.story) for each in faulty)
        killers += tuple(Killer(each.requirement, each.name, each.story) for each in WORKER_MUTANTS)
        return Catalogue(http_registry(), http_checks(), killers, _HTTP_SOURCES)
    killers = tuple(Killer(each.requirement, each.name, each.story) for each in MUTANTS)
    return Catalogue(default_registry(), all_checks(), killers, _GRPC_SOURCES)


def is_http_id(requirement: str) -> bool:
    """Whether an id belongs to an HTTP contract."""
    return requirement.startswith(_HTTP_IDS)
