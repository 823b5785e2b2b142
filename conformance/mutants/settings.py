"""What checks change in an engine's settings and put back, seen without the mutant before it.

A check puts back what was advertised. When that is the mutant's lie, the engine has another setting
afterwards, and every mutant after this one is tried on another engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from conformance.errors import HarnessError
from conformance.mutants.methods import CAPABILITIES, RECONFIGURE, SERVER_INFO
from conformance.wire.connection import Connection
from conformance.wire.target import Target
from conformance.wire.transcript import Transcript
from oe_wire import v1
from oe_wire.services import METHODS

_SECONDS = 30.0


@contextmanager
def settings_kept(target: Target) -> Iterator[None]:
    """After the block the engine's first model has the priorities and the limit of outputs that it
    had before. Raises HarnessError when the engine does not take them back.
    """
    with Connection(target) as connection:
        before = _settings(connection)
        try:
            yield
        finally:
            if before is not None and _settings(connection) != before:
                _put_back(connection, before)


def _settings(connection: Connection) -> v1.ReconfigureRequest | None:
    """What Reconfigure can change, as the call that sets it; None when the engine tells nothing."""
    info = _ask(connection, SERVER_INFO, v1.GetServerInfoRequest()).messages
    models = info[0].supported_models if info and isinstance(info[0], v1.ServerInfo) else ()
    request = v1.GetCapabilitiesRequest(model=next(iter(models), ""))
    scope = _ask(connection, CAPABILITIES, request).messages
    if not scope or not isinstance(scope[0], v1.Capabilities):
        return None
    generation = scope[0].generation
    settings = v1.ReconfigureRequest(supports_priority=generation.supports_priority)
    if generation.HasField("max_num_sequences"):
        settings.max_num_sequences = generation.max_num_sequences
    return settings


def _put_back(connection: Connection, settings: v1.ReconfigureRequest) -> None:
    call = _ask(connection, RECONFIGURE, settings)
    if not call.ending.ok:
        raise HarnessError(f"the engine keeps what a check changed: {call.ending.details}")


def _ask(
    connection: Connection,
    name: str,
    request: v1.GetServerInfoRequest | v1.GetCapabilitiesRequest | v1.ReconfigureRequest,
) -> Transcript:
    return connection.call(METHODS[name], request, deadline=_SECONDS)
