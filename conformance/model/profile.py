"""A profile version: services, capability fields and requirements, as its file states them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from conformance.model.expression import ALWAYS, Expression
from conformance.model.requirement import Requirement


@dataclass(frozen=True, slots=True)
class Rpc:
    """One RPC of a service within a profile.

    A required RPC never answers UNIMPLEMENTED; with `when`, it is for one side of the profile
    and the other side refuses it. An optional RPC is served exactly when its `when` holds, and
    freely when it has none. `alias_of` is the full name (service/method) of the RPC that shares
    its types and its behaviour.
    """

    name: str
    required: bool = True
    when: Expression = ALWAYS
    alias_of: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """A gRPC service (fully qualified name) and the RPCs of it that belong to the profile."""

    name: str
    rpcs: tuple[Rpc, ...]

    def methods(self) -> Iterator[tuple[str, Rpc]]:
        """Full names (service/method) with their RPCs."""
        for rpc in self.rpcs:
            yield f"{self.name}/{rpc.name}", rpc


class Absent(StrEnum):
    """What a missing capability field means."""

    UNREPORTED = "unreported"  # nothing is claimed; the suite uses the fallback
    INVALID = "invalid"  # the engine must send it
    DEFAULT = "default"  # the same as sending the default


class Zero(StrEnum):
    """What a present zero, false or empty list means."""

    INVALID = "invalid"
    UNLIMITED = "unlimited"
    OFF = "off"
    VALUE = "value"  # an ordinary value


@dataclass(frozen=True, slots=True)
class Capability:
    """One declared field: where it lies, what its absence and zero mean, what it governs.

    `path` starts at Capabilities, or at ModelInfo when its first part is `model`, or at
    EngineInfo for `engine`. `default` is set when `absent` is DEFAULT. `fallback` is what the
    suite assumes for an unreported limit (None: it does not probe it). `relation` binds only
    when every field it names is present. `features` are feature-combination tokens.
    """

    path: str
    scope: str
    type: str
    absent: Absent
    zero: Zero
    text: str
    default: bool | int | tuple[str, ...] | None = None
    fallback: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    relation: Expression = ALWAYS
    features: tuple[str, ...] = ()

    @property
    def repeated(self) -> bool:
        """Whether the field is a list."""
        return self.type.startswith("repeated ")

    @property
    def reference(self) -> str:
        """The path as `applies` expressions spell it."""
        root = self.path.partition(".")[0]
        return self.path if root in ("model", "engine") else f"capabilities.{self.path}"


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """A profile that must be advertised too: this major, at least this minor."""

    profile: str
    major: int
    minor: int


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile version. `digest` is the sha256 (hex) of the bytes of the file `source`.

    `capability` is the path of the Capabilities submessage that carries its details, empty when
    it has none. `roles` are EngineRole short names the profile makes sense for. `features` are
    the feature tokens it adds to the registry.
    """

    name: str
    major: int
    minor: int
    stage: str
    summary: str
    roles: tuple[str, ...]
    capability: str
    health_services: tuple[str, ...]
    prerequisites: tuple[Prerequisite, ...]
    features: tuple[str, ...]
    incompatible: tuple[tuple[str, ...], ...]
    id_prefixes: tuple[str, ...]
    messages: tuple[str, ...]
    services: tuple[Service, ...]
    capabilities: tuple[Capability, ...]
    requirements: tuple[Requirement, ...]
    source: str
    digest: str

    @property
    def version(self) -> str:
        """Major and minor: `1.0`."""
        return f"{self.major}.{self.minor}"

    @property
    def title(self) -> str:
        """Name and version, as claims spell it: `core 1.0`."""
        return f"{self.name} {self.version}"

    def methods(self) -> Iterator[tuple[str, Rpc]]:
        """Full names (service/method) with their RPCs, over every service."""
        for service in self.services:
            yield from service.methods()
