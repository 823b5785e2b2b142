"""The settings file `oe-conform.toml`: what an operator says about a target once, not each time."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conformance.errors import ConfigError, unknown_name
from conformance.runtimes.orchestration import TABLE, Orchestration, read_orchestration
from conformance.runtimes.stream_error import TABLE as STREAM_ERRORS
from conformance.runtimes.stream_error import read_stream_errors
from conformance.runtimes.worker import WorkerTerms, read_terms
from conformance.wire.hooks import Hooks, command

DEFAULT = Path("oe-conform.toml")
_HOOKS = ("restart", "stop")
_TABLES = ("hooks", "worker", TABLE, STREAM_ERRORS)


@dataclass(frozen=True, slots=True)
class Settings:
    """hooks: commands that stop and restart the target. worker: the terms of an HTTP worker.
    orchestration: what runs an HTTP runtime and routes to it. stream_errors: fields of requests
    that are known to fail inside a stream, by route of an HTTP runtime.
    """

    hooks: Hooks = field(default_factory=Hooks)
    worker: WorkerTerms = field(default_factory=WorkerTerms)
    orchestration: Orchestration | None = None
    stream_errors: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )


def load_settings(path: Path | None) -> Settings:
    """The settings in the file; without a path those of DEFAULT, if it is there.

    Raises ConfigError for a file that cannot be read, and for tables and keys that mean nothing.
    """
    if path is None and not DEFAULT.exists():
        return Settings()
    file = DEFAULT if path is None else path
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"cannot be read ({error})", source=str(file), expected="a readable TOML file in UTF-8"
        ) from error
    for name in table:
        if name not in _TABLES:
            raise unknown_name("table", name, _TABLES, source=str(file))
    return Settings(
        _hooks(table.get("hooks", {}), str(file)),
        read_terms(table.get("worker", {}), str(file)),
        read_orchestration(table.get(TABLE), str(file)),
        read_stream_errors(table.get(STREAM_ERRORS, {}), str(file)),
    )


def _hooks(table: Any, source: str) -> Hooks:
    if not isinstance(table, dict):
        raise ConfigError("hooks is no table", source=source, expected="[hooks]")
    for name, words in table.items():
        if name not in _HOOKS:
            raise unknown_name("hook", name, _HOOKS, source=source)
        if not isinstance(words, list):
            raise ConfigError(
                f"hooks.{name} is {words!r}",
                source=source,
                expected='a list of words, such as ["systemctl", "restart", "engine"]',
            )
    return Hooks(**{name: command(words, name=name) for name, words in table.items()})
