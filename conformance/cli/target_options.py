"""The options that say which target to reach and how; shared by every command that calls one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import rich_click as click

from conformance.runner.local_engine import starting_engine
from conformance.runner.settings import load_settings
from conformance.wire.hooks import Hooks
from conformance.wire.target import Target, load_tls, metadata_from, parse_address, secret_names

_OPTIONS = (
    click.option(
        "--target",
        metavar="ADDRESS",
        help="host:port, dns:///host:port, unix:/path or [ipv6]:port. Without it the reference "
        "engine is started with its small model.",
    ),
    click.option(
        "--control",
        metavar="ADDRESS",
        help="Separate listener that serves everything but the data plane.",
    ),
    click.option("--tls", is_flag=True, help="Use TLS, trusting the system's certificates."),
    click.option("--ca", metavar="FILE", help="Trust this PEM certificate instead; implies --tls."),
    click.option("--cert", metavar="FILE", help="Client certificate (PEM) for mutual TLS."),
    click.option("--key", metavar="FILE", help="Private key (PEM) of the client certificate."),
    click.option("--authority", metavar="NAME", help="Server name to expect in the certificate."),
    click.option(
        "--metadata", metavar="KEY=VALUE", multiple=True, help="Metadata sent with every call."
    ),
    click.option(
        "--metadata-env",
        metavar="KEY=VARIABLE",
        multiple=True,
        help="Metadata whose value is read from an environment variable; never printed or stored.",
    ),
    click.option(
        "--config",
        metavar="FILE",
        help="Settings of the target: hook commands. Default: oe-conform.toml in this directory.",
    ),
)


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """What the user gave of the options above."""

    target: str | None
    control: str | None
    tls: bool
    ca: str | None
    cert: str | None
    key: str | None
    authority: str | None
    metadata: tuple[str, ...]
    metadata_env: tuple[str, ...]
    config: str | None

    @contextmanager
    def start(self) -> Iterator[Callable[[], Target]]:
        """The way to the target: waits for the reference engine that is started, and runs while
        the block does, if no target is named.

        Both raise ConfigError for options that cannot be used.
        """
        if self.target is None:
            with starting_engine() as engine:

                def ready() -> Target:
                    load_settings(_path(self.config))
                    engine.wait_ready()
                    return self._at(engine.address, engine.hooks)

                yield ready
        else:
            address = self.target
            yield lambda: self._at(address, load_settings(_path(self.config)).hooks)

    @contextmanager
    def open(self) -> Iterator[Target]:
        """As `start`, with the target when it is ready."""
        with self.start() as ready:
            yield ready()

    def _at(self, address: str, hooks: Hooks) -> Target:
        return Target(
            address=parse_address(address),
            control=parse_address(self.control) if self.control else None,
            tls=load_tls(
                enabled=self.tls,
                ca=_path(self.ca),
                cert=_path(self.cert),
                key=_path(self.key),
            ),
            authority=self.authority,
            metadata=metadata_from(self.metadata, self.metadata_env),
            secrets=secret_names(self.metadata_env),
            hooks=hooks,
        )


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options above to a command, which gets them as one `where: TargetOptions`."""

    @functools.wraps(command)
    def with_target(**arguments: Any) -> Any:
        given = {field.name: arguments.pop(field.name) for field in fields(TargetOptions)}
        return command(where=TargetOptions(**given), **arguments)

    for option in reversed(_OPTIONS):
        with_target = option(with_target)
    return with_target


def _path(name: str | None) -> Path | None:
    return Path(name) if name else None
