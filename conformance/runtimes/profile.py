"""A runtime profile: a pinned build of a server, its routes, capabilities and known bugs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from conformance.errors import ConfigError, unknown_name
from conformance.runtimes.orchestration import Orchestration
from conformance.runtimes.stream_error import StreamError

COMMON = "http-common"  # the contract that binds every HTTP runtime


class State(StrEnum):
    """What a profile says of a capability. It is an expectation, never evidence."""

    SUPPORTED = "supported"
    CONDITIONAL = "conditional"  # model, backend or launch configuration decide
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"  # there is no basis for a claim


class Effect(StrEnum):
    """What a call of a route does to the server besides answering."""

    NON_MUTATING = "non-mutating"
    CONSUMPTIVE = "consumptive"  # takes data away that a later reader misses
    INFERENCE_CANARY = "inference-canary"  # a probe that runs the model
    INFERENCE = "inference"
    STATE_CHANGE = "state-change"  # never called


class Framing(StrEnum):
    """How a response body is cut into messages."""

    JSON = "json"
    SSE = "sse"
    SSE_NAMED = "sse-named"
    NDJSON = "ndjson"
    TEXT = "text"
    PROMETHEUS = "prometheus-text"
    NONE = "none"  # no body, or no stream


class Envelope(StrEnum):
    """The shape of an error body."""

    OPENAI = "openai"  # {"error": {message, type, param, code: string or null}}
    OPENAI_INT_CODE = "openai-int-code"  # the same with a number as code; param may be absent
    FLAT = "flat"  # {message, type, code, ...} at the top
    ERROR_STRING = "error-string"  # {"error": "text"}
    DETAIL = "detail"  # {"detail": text or list}
    TEXT = "text"  # no JSON


@dataclass(frozen=True, slots=True)
class Terminator:
    """How a stream says that it is over. kind: `sse-data` (an event with this data), `event` (one
    of these event names), `json-field` (a line whose field of this name is true), `none`.
    after_error: whether it follows an error inside the stream: present, absent or unknown.
    """

    kind: str
    values: tuple[str, ...] = ()
    after_error: str = "unknown"


@dataclass(frozen=True, slots=True)
class UsagePlace:
    """Where a stream carries token counts (`extra-chunk`, `last-chunk`, `every-chunk`,
    `terminal`, `absent`) and when (`include_usage`, `always`, `never`).
    """

    where: str
    when: str


@dataclass(frozen=True, slots=True)
class Route:
    """One route. contract: the requirement set that it promises, empty for none. condition: must
    be stated for the route to exist. evidence: what a good answer shows (`process-alive`).
    envelope: of error answers; stream_envelope: of an error inside a stream, None = not known.
    """

    name: str
    method: str
    path: str
    effect: Effect
    contract: str = ""
    unary: Framing = Framing.JSON
    stream: Framing = Framing.NONE
    terminator: Terminator | None = None
    usage: UsagePlace | None = None
    envelope: Envelope | None = None
    stream_envelope: Envelope | None = None
    condition: str = ""
    evidence: str = ""
    close_delimited: bool = False


@dataclass(frozen=True, slots=True)
class Capability:
    """What the profile says of one capability. condition: the name by which an operator states
    that it holds (`--condition`); when: the condition in words. evidence: a link or a reference.
    """

    name: str
    state: State
    condition: str = ""
    when: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A known bug: the requirement fails, in the way that `actual` describes (`#` stands for any
    number). scripted: seen with the scripted model only, so another model need not show it.
    """

    requirement: str
    reason: str
    actual: str
    link: str
    scripted: bool = False


@dataclass(frozen=True, slots=True)
class Reporter:
    """Where a server says which build it is: a JSON pointer into a route's answer, and the
    pattern of a value that says it.
    """

    route: str
    pointer: str
    pattern: str


@dataclass(frozen=True, slots=True)
class RuntimeProfile:
    """One pinned build. digest: sha256 (hex) of the bytes of the file `source`. limits: numbers
    that the build is known to have, by name (`context_tokens`, `parallel`). cancel: seconds until
    an abandoned call is freed, by name (`stream`, `unary`). common: whether the rules of every
    HTTP inference server bind it. stream_errors: requests that are known to fail inside a stream.
    orchestration: what runs it and routes to it, None for nothing.
    """

    name: str
    build: str
    title: str
    tier: str
    locality: tuple[str, ...]
    summary: str
    envelope: Envelope
    routes: tuple[Route, ...]
    capabilities: Mapping[str, Capability]
    reporters: tuple[Reporter, ...]
    deviations: tuple[Deviation, ...]
    limits: Mapping[str, int]
    cancel: Mapping[str, float]
    sources: tuple[str, ...]
    source: str
    digest: str
    common: bool = True
    stream_errors: tuple[StreamError, ...] = ()
    orchestration: Orchestration | None = None

    @property
    def id(self) -> str:
        """Name and build: `llama-cpp@b10229`."""
        return f"{self.name}@{self.build}"

    @property
    def contracts(self) -> frozenset[str]:
        """Names of the requirement sets that bind this runtime."""
        own = frozenset(route.contract for route in self.routes if route.contract)
        return own | {COMMON} if self.common else own

    @property
    def conditions(self) -> frozenset[str]:
        """Names that an operator may state."""
        named = {capability.condition for capability in self.capabilities.values()}
        named |= {route.condition for route in self.routes}
        return frozenset(named | {each.condition for each in self.stream_errors}) - {""}

    @property
    def streaming(self) -> tuple[str, ...]:
        """Names of the routes that have streams."""
        return tuple(each.name for each in self.routes if each.stream is not Framing.NONE)

    def route(self, name: str) -> Route:
        """The route of this name. Raises ConfigError for an unknown one."""
        found = {route.name: route for route in self.routes}
        if name not in found:
            raise unknown_name("route", name, found, source=self.source)
        return found[name]

    def of_contract(self, contract: str) -> Route | None:
        """The first route that promises the contract."""
        return next((route for route in self.routes if route.contract == contract), None)

    def behind(self, orchestration: Orchestration | None) -> RuntimeProfile:
        """The same runtime with an orchestrator before it: its paths get the prefix, and nothing
        else about it changes.
        """
        if orchestration is None:
            return self
        routes = tuple(replace(route, path=orchestration.path(route.path)) for route in self.routes)
        return replace(self, routes=routes, orchestration=orchestration)

    def capability(self, name: str) -> Capability:
        """What is said of a capability. Raises ConfigError when nothing is."""
        if name not in self.capabilities:
            raise ConfigError(f"nothing is said of the capability {name!r}", source=self.source)
        return self.capabilities[name]
