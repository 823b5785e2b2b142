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
from conformance.errors import ConfigError
from conformance.http.policy import SECRET_HEADERS, SecretReference
from conformance.http.target import HttpTarget
from conformance.runner import http_setup as setup
from conformance.runner.http_setup import HttpSubject, http_subject
from conformance.runner.settings import load_settings
from conformance.runtimes.profile import Effect

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
        help=f"HTTP: calls may have these effects: {', '.join(setup.ALLOWED)}.",
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
        return setup.allowed_effects(self.allow)


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
    return setup.is_origin(where.target)


def http_target(where: TargetOptions) -> HttpTarget:
    """The target that the options describe. Raises ConfigError for those that only gRPC has."""
    for name in ("control", "authority", "cert", "key"):
        if getattr(where, name):
            raise ConfigError(f"--{name} with an HTTP target", expected="a gRPC target")
    headers = tuple(_pair(text, "--metadata") for text in where.metadata)
    for name, _ in headers:
        if name in SECRET_HEADERS:
            raise ConfigError(f"--metadata {name}", expected=f"--metadata-env {name}=VARIABLE")
    pairs = (_pair(text, "--metadata-env") for text in where.metadata_env)
    references = tuple(SecretReference(name, variable) for name, variable in pairs)
    return setup.http_target(
        where.target or "",
        headers=headers,
        references=references,
        environment=os.environ,
        trust=_trust(where.ca),
    )


def http_profile(profiles: tuple[str, ...], config: str | None) -> HttpSubject:
    """What the one `--profile` of an HTTP target names, with what the target's file says of it.
    Raises ConfigError.
    """
    return http_subject(profiles, load_settings(Path(config) if config else None))


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
