"""The HTTP side of the command line: which target is one, and how a run of it is set up."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import rich_click as click

from conformance.cli.target_options import TargetOptions
from conformance.errors import ConfigError, unknown_name
from conformance.http.origin import parse_origin
from conformance.http.pinning import PinnedDialer
from conformance.http.policy import SECRET_HEADERS, Policy, SecretReference, secrets_from
from conformance.http.target import HttpTarget
from conformance.runner.settings import load_settings
from conformance.runtimes.declared import HARMLESS
from conformance.runtimes.profile import Effect, RuntimeProfile
from conformance.runtimes.registry import PREFIX, runtime_profile
from conformance.runtimes.worker import CONTRACT as WORKER_CONTRACT
from conformance.runtimes.worker import PREFIX as WORKERS
from conformance.runtimes.worker import WorkerTerms, worker_profile

# What `--allow` may name: a run makes harmless calls anyway, and never changes a state.
ALLOWED = (Effect.CONSUMPTIVE.value, Effect.INFERENCE_CANARY.value)

_OPTIONS = (
    click.option(
        "--scripted",
        is_flag=True,
        help="HTTP: the target serves the scripted model, so its answers are known exactly.",
    ),
    click.option(
        "--condition",
        "conditions",
        multiple=True,
        metavar="NAME",
        help="HTTP: this condition of the runtime profile holds for the target; repeatable.",
    ),
    click.option(
        "--allow",
        "allow",
        metavar="EFFECT[,EFFECT]",
        default="",
        help=f"HTTP: calls may have these effects: {', '.join(ALLOWED)}.",
    ),
    click.option(
        "--context-tokens",
        type=click.IntRange(min=0),
        default=0,
        help="HTTP: the longest prompt that the target was started for.",
    ),
)


@dataclass(frozen=True, slots=True)
class HttpWords:
    """What the user gave of the options above."""

    scripted: bool
    conditions: tuple[str, ...]
    allow: str
    context_tokens: int

    @property
    def given(self) -> bool:
        """Whether any of them was."""
        return bool(self.scripted or self.conditions or self.allow or self.context_tokens)

    @property
    def allowed(self) -> frozenset[Effect]:
        """The effects that calls may have. Raises ConfigError for one that no option allows."""
        names = [name for name in self.allow.split(",") if name]
        for name in names:
            if name not in ALLOWED:
                raise ConfigError(f"--allow {name!r}", expected="some of " + ",".join(ALLOWED))
        return HARMLESS | {Effect(name) for name in names}


def http_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options above to a command, which gets them as one `http: HttpWords`."""

    def with_http(**arguments: Any) -> Any:
        given = {field.name: arguments.pop(field.name) for field in fields(HttpWords)}
        words = HttpWords(**given)
        return command(http=words, **arguments)

    with_http.__name__ = command.__name__
    with_http.__doc__ = command.__doc__
    with_http.__dict__.update(command.__dict__)
    for option in reversed(_OPTIONS):
        with_http = option(with_http)
    return with_http


def is_http(where: TargetOptions) -> bool:
    """Whether the target is an HTTP origin."""
    return where.target is not None and where.target.startswith(("http://", "https://"))


def http_target(where: TargetOptions) -> HttpTarget:
    """The target that the options describe. Raises ConfigError for those that only gRPC has."""
    for name in ("control", "authority", "cert", "key"):
        if getattr(where, name):
            raise ConfigError(f"--{name} with an HTTP target", expected="a gRPC target")
    origin = parse_origin(where.target or "")
    headers = tuple(_pair(text, "--metadata") for text in where.metadata)
    for name, _ in headers:
        if name in SECRET_HEADERS:
            raise ConfigError(f"--metadata {name}", expected=f"--metadata-env {name}=VARIABLE")
    pairs = (_pair(text, "--metadata-env") for text in where.metadata_env)
    references = tuple(SecretReference(name, variable) for name, variable in pairs)
    secrets = secrets_from(references, os.environ)
    secrets()  # a variable that is not set is said before anything is called
    # Who names a loopback address on the command line has opted in to it.
    policy = Policy(loopback=origin.loopback)
    policy.admit(origin)
    return HttpTarget(origin, PinnedDialer(policy), headers, secrets, _trust(where.ca))


def http_profile(
    profiles: tuple[str, ...], config: str | None
) -> tuple[RuntimeProfile, WorkerTerms | None]:
    """What the one `--profile` of an HTTP target names: a runtime profile, behind what the
    target's file says about its orchestration, or the contract of workers on the terms that the
    file states. Raises ConfigError.
    """
    named = [name for name in profiles if name.startswith((PREFIX, WORKERS))]
    if len(named) != 1 or len(profiles) != 1:
        raise ConfigError(
            f"{len(named)} profiles for an HTTP target",
            expected=f"one --profile {PREFIX}NAME@BUILD (`oe-conform list --runtimes`) or "
            f"{WORKERS}{WORKER_CONTRACT}",
        )
    settings = load_settings(Path(config) if config else None)
    if named[0].startswith(WORKERS):
        if named[0] != WORKERS + WORKER_CONTRACT:
            raise unknown_name("worker profile", named[0], [WORKERS + WORKER_CONTRACT])
        return worker_profile(settings.worker), settings.worker
    return runtime_profile(named[0]).behind(settings.orchestration), None


def _trust(ca: str | None) -> ssl.SSLContext | None:
    if ca is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"--ca {ca}: {error}", expected="a PEM certificate") from error


def _pair(text: str, option: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        # The text may be a bare secret, so it is not shown.
        raise ConfigError(f"an entry of {option} is no key and value", expected="KEY=VALUE")
    return key.lower(), value
