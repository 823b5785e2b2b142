"""How a run of an HTTP target is set up from what its user says, on a command line or in pytest."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from conformance.errors import ConfigError, unknown_name
from conformance.http.origin import parse_origin
from conformance.http.pinning import PinnedDialer
from conformance.http.policy import Policy, SecretReference, secrets_from
from conformance.http.target import HttpTarget
from conformance.runner.settings import Settings
from conformance.runtimes.declared import HARMLESS
from conformance.runtimes.profile import Effect, RuntimeProfile
from conformance.runtimes.registry import PREFIX, runtime_profile
from conformance.runtimes.worker import CONTRACT as WORKER_CONTRACT
from conformance.runtimes.worker import PREFIX as WORKERS
from conformance.runtimes.worker import WorkerTerms, worker_profile

# What a user may allow: a run makes harmless calls anyway, and never changes a state.
ALLOWED = (Effect.CONSUMPTIVE.value, Effect.INFERENCE_CANARY.value)
SCHEMES = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class HttpSubject:
    """What a target is held against: a runtime profile with what its operator says of it, or the
    contract of workers on the operator's terms.
    """

    profile: RuntimeProfile
    worker: WorkerTerms | None = None
    stream_errors: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )


def is_origin(address: object) -> bool:
    """Whether an address is that of an HTTP target."""
    return isinstance(address, str) and address.startswith(SCHEMES)


def is_http_profile(name: str) -> bool:
    """Whether a name is one of those that HTTP targets have."""
    return name.startswith((PREFIX, WORKERS))


def http_subject(
    profiles: tuple[str, ...], settings: Settings, option: str = "--profile"
) -> HttpSubject:
    """What the one profile of an HTTP target names: a runtime profile, behind what the settings
    say about its orchestration, or the contract of workers. Raises ConfigError.
    """
    named = [name for name in profiles if is_http_profile(name)]
    if len(named) != 1 or len(profiles) != 1:
        raise ConfigError(
            f"{len(named)} profiles for an HTTP target",
            expected=f"one {option} {PREFIX}NAME@BUILD (`oe-conform list --runtimes`) or "
            f"{WORKERS}{WORKER_CONTRACT}",
        )
    if named[0].startswith(WORKERS):
        if named[0] != WORKERS + WORKER_CONTRACT:
            raise unknown_name("worker profile", named[0], [WORKERS + WORKER_CONTRACT])
        return HttpSubject(worker_profile(settings.worker), settings.worker)
    profile = runtime_profile(named[0]).behind(settings.orchestration)
    return HttpSubject(profile, stream_errors=settings.stream_errors)


def allowed_effects(words: str, option: str = "--allow") -> frozenset[Effect]:
    """The effects that calls may have, from names between commas. Raises ConfigError."""
    names = [name for name in words.split(",") if name]
    for name in names:
        if name not in ALLOWED:
            raise ConfigError(f"{option} {name!r}", expected="some of " + ",".join(ALLOWED))
    return HARMLESS | {Effect(name) for name in names}


def http_target(
    address: str,
    *,
    headers: tuple[tuple[str, str], ...] = (),
    references: tuple[SecretReference, ...] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
    trust: ssl.SSLContext | None = None,
) -> HttpTarget:
    """The target at an origin that its user names. Raises ConfigError for one that the policy
    refuses, and for a reference to a secret that is not there, before anything is called.
    """
    origin = parse_origin(address)
    secrets = secrets_from(references, environment)
    secrets()
    # Who names a loopback address has opted in to it.
    policy = Policy(loopback=origin.loopback)
    policy.admit(origin)
    return HttpTarget(origin, PinnedDialer(policy), headers, secrets, trust)
