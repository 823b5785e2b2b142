"""How the pytest plugin's options become a selection and an opened target. No pytest here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.errors import ConfigError
from conformance.http.target import HttpTarget
from conformance.model.registry import Registry, default_registry
from conformance.model.requirement import Requirement
from conformance.runner.baseline import Baseline, load_baseline
from conformance.runner.budget import BUDGETS, Budget
from conformance.runner.http_session import HttpOptions, open_http_session
from conformance.runner.http_setup import (
    HttpSubject,
    allowed_effects,
    http_subject,
    http_target,
    is_http_profile,
    is_origin,
)
from conformance.runner.opened import Opened
from conformance.runner.selection import Selection, validated
from conformance.runner.session import Options, open_session
from conformance.runner.settings import Settings, load_settings
from conformance.runtimes.contracts import http_registry
from conformance.wire.target import Target, parse_address

# The value of an option by its name.
Option = Callable[[str], Any]
_HTTP_ONLY = ("--oe-scripted", "--oe-condition", "--oe-allow", "--oe-context-tokens")


def selected(option: Option) -> list[Requirement]:
    """The requirements that the options select: of an HTTP target those that bind it. Raises
    ConfigError for a wrong option.
    """
    _budget(option)
    if _over_http(option):
        registry, bound = http_registry(), _subject(option).profile.contracts
        allowed_effects(option("--oe-allow"), "--oe-allow")
        selection = validated(Selection(ids=_ids(option)), registry)
    else:
        registry = default_registry()
        given = [name for name in _HTTP_ONLY if option(name)]
        if given:
            raise ConfigError(f"{given[0]} without an HTTP target", expected="http://host:port")
        selection = validated(Selection(_profiles(option), _ids(option)), registry)
        bound = frozenset(profile.name for profile in registry.profiles)
    return [
        row
        for row in registry.requirements()
        if row.profile in bound and selection.wants(row.profile) and selection.includes(row)
    ]


def opened(target: object, option: Option) -> Opened:
    """The target, reached and planned. target: an address, or a Target or HttpTarget. Raises
    ConfigError and UnreachableError.
    """
    if _over_http(option):
        return open_http_session(_http_options(target, option))
    if not isinstance(target, Target):
        target = Target(parse_address(str(target)), hooks=_settings(option).hooks)
    return open_session(
        Options(
            target=target,
            baseline=_baseline(option, default_registry()),
            model=option("--oe-model"),
            budget=_budget(option),
            seed=option("--oe-seed"),
            selection=Selection(_profiles(option), _ids(option)),
            slow_factor=option("--oe-slow-factor"),
        )
    )


def _http_options(target: object, option: Option) -> HttpOptions:
    subject = _subject(option)
    return HttpOptions(
        target=target if isinstance(target, HttpTarget) else http_target(str(target)),
        profile=subject.profile,
        worker=subject.worker,
        stream_errors=subject.stream_errors,
        baseline=_baseline(option, http_registry()),
        model=option("--oe-model"),
        scripted=option("--oe-scripted"),
        conditions=tuple(option("--oe-condition")),
        allowed=allowed_effects(option("--oe-allow"), "--oe-allow"),
        context_tokens=option("--oe-context-tokens"),
        budget=_budget(option),
        seed=option("--oe-seed"),
        selection=Selection(ids=_ids(option)),
        slow_factor=option("--oe-slow-factor"),
    )


def _over_http(option: Option) -> bool:
    """Whether the target is an HTTP one: its origin says so, or the profile, where a fixture gives
    the origin later.
    """
    return is_origin(option("--oe-target")) or any(map(is_http_profile, _profiles(option)))


def _subject(option: Option) -> HttpSubject:
    return http_subject(_profiles(option), _settings(option), "--oe-profile")


def _profiles(option: Option) -> tuple[str, ...]:
    return tuple(option("--oe-profile"))


def _ids(option: Option) -> tuple[str, ...]:
    return tuple(option("--oe-id"))


def _budget(option: Option) -> Budget:
    name = option("--oe-budget")
    if name not in BUDGETS:
        raise ConfigError(f"--oe-budget {name!r}", expected="one of " + ", ".join(BUDGETS))
    return BUDGETS[name]


def _baseline(option: Option, registry: Registry) -> Baseline | None:
    known = option("--oe-baseline")
    return load_baseline(Path(known), registry) if known else None


def _settings(option: Option) -> Settings:
    file = option("--oe-config")
    return load_settings(Path(file) if file else None)
