"""What is known of an HTTP target before its checks: all that cases are planned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from google.protobuf.message import Message

from conformance.runtimes.profile import Capability, Effect, Route, RuntimeProfile, State
from conformance.runtimes.worker import WorkerTerms

# Effects that a run may have without the operator's word for it.
HARMLESS = frozenset({Effect.NON_MUTATING, Effect.INFERENCE})


class HttpClass(StrEnum):
    """What kind of HTTP target a run judges."""

    RUNTIME = "http-runtime"
    WORKER = "http-worker"


@dataclass(frozen=True, slots=True)
class HttpDeclared:
    """A runtime profile, and what the operator says of this server.

    model_name: what requests ask for. scripted: the server serves the scripted model, so answers
    are known exactly. conditions: names of stated conditions. allowed: effects that a call may
    have. context_tokens: the longest prompt that it was started for, 0 = not stated. observed:
    identity fields that the server itself reported, by name; nothing else is ever called reported.
    stream_errors: fields of requests that the operator knows to fail inside a stream, by route.
    """

    runtime: RuntimeProfile
    model_name: str = ""
    scripted: bool = False
    conditions: frozenset[str] = frozenset()
    allowed: frozenset[Effect] = HARMLESS
    context_tokens: int = 0
    observed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    target_class: HttpClass = HttpClass.RUNTIME
    worker: WorkerTerms | None = None
    stream_errors: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    @property
    def profile_name(self) -> str:
        """As `--profile` names it: `runtimes/llama-cpp@b10229`, `workers/systemone`."""
        if self.target_class is HttpClass.WORKER:
            return f"workers/{self.runtime.name}"
        return f"runtimes/{self.runtime.id}"

    def route(self, contract: str) -> Route | None:
        """The route that promises a contract, if the runtime has one that is there."""
        route = self.runtime.of_contract(contract)
        return route if route is not None and self.states(route.condition) else None

    def states(self, condition: str) -> bool:
        """Whether the operator stated the condition; there may be none."""
        return not condition or condition in self.conditions

    def failing(self, route: str) -> Mapping[str, Any] | None:
        """Fields of a request that fails inside a stream of the route: the operator's, else the
        profile's where they hold for this server; None when nobody knows any.
        """
        if route in self.stream_errors:
            return self.stream_errors[route]
        for each in self.runtime.stream_errors:
            known = self.states(each.condition) and (self.scripted or not each.scripted)
            if each.route == route and known:
                return each.fields
        return None

    def capability(self, name: str) -> Capability:
        """What the profile says of a capability. Raises ConfigError when nothing."""
        return self.runtime.capability(name)

    def has(self, name: str) -> bool:
        """Whether the capability may be used: supported, or conditional and stated."""
        capability = self.runtime.capabilities.get(name)
        if capability is None:
            return False
        if capability.state is State.CONDITIONAL:
            return self.states(capability.condition)
        return capability.state is State.SUPPORTED

    # What verdicts and reports ask of any target (conformance.model.facts)

    @property
    def profiles(self) -> frozenset[str]:
        return self.runtime.contracts

    @property
    def engine(self) -> Message | None:
        return None

    @property
    def model(self) -> Message | None:
        return None

    @property
    def capabilities(self) -> Message | None:
        return None

    @property
    def role(self) -> str:
        return ""

    @property
    def dialect(self) -> str:
        return ""

    @property
    def legacy(self) -> bool:
        return False

    @property
    def single_service(self) -> bool:
        return False

    @property
    def generates(self) -> bool:
        return True
