"""What happened on one WatchLoad call. Readers for laws and checks; nothing is judged here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.laws.law import Finding, Ruling
from conformance.wire.declared import Declared
from conformance.wire.transcript import Event, Transcript
from oe_wire import v1

WATCH_LOAD = "openengine.v1.OpenEngineObservability/WatchLoad"
WATCH_LOAD_ONLY = frozenset({WATCH_LOAD})
NANOS_PER_MS = 1_000_000

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sent:
    """One response: its position on the stream from 0, and when it arrived, in seconds since the
    start of the call.
    """

    event: int
    seconds: float
    response: v1.WatchLoadResponse

    @property
    def kind(self) -> str | None:
        """`settings`, `snapshot`, `heartbeat`, `error`, or None when no event is set."""
        kind: str | None = self.response.WhichOneof("event")
        return kind

    @property
    def pair(self) -> Pair:
        """Epoch and revision of the capabilities, which are ordered together."""
        return self.response.configuration_epoch, self.response.capability_revision

    def ms_after(self, other: Sent) -> float:
        """Milliseconds on the engine's clock since `other` was made; negative when it went back."""
        gap: int = self.response.timestamp_unix_nanos - other.response.timestamp_unix_nanos
        return gap / NANOS_PER_MS


def sent(events: Iterable[Event]) -> tuple[Sent, ...]:
    """Every WatchLoadResponse, in order of arrival."""
    return tuple(
        Sent(at, event.seconds, event.message)
        for at, event in enumerate(events)
        if isinstance(event.message, v1.WatchLoadResponse)
    )


def of_kind(responses: Iterable[Sent], kind: str) -> tuple[Sent, ...]:
    """The responses of one kind."""
    return tuple(each for each in responses if each.kind == kind)


def request_of(transcript: Transcript) -> v1.WatchLoadRequest | None:
    """The request, None when the bytes sent were no WatchLoadRequest."""
    request = transcript.request
    return request if isinstance(request, v1.WatchLoadRequest) else None


def wants_initial(request: v1.WatchLoadRequest) -> bool:
    """Whether a snapshot is to follow the settings: when asked for, and when nothing is said."""
    return request.initial_snapshot or not request.HasField("initial_snapshot")


def settings_of(responses: Iterable[Sent]) -> v1.WatchLoadSettings | None:
    """The first settings of the stream, wherever they came; None when there are none."""
    return next((each.response.settings for each in responses if each.kind == "settings"), None)


def bounds_of(declared: Declared) -> v1.LoadCapabilities | None:
    """The advertised limits of scheduling_load; None when there are none or they make no sense.

    That they are sane is the matter of one row; all others need them to be.
    """
    scope = declared.engine_scope
    if scope is None or not scope.observability.HasField("load"):
        return None
    load = scope.observability.load
    return load if not insane(load) else None


def insane(load: v1.LoadCapabilities) -> tuple[str, ...]:
    """Names of the intervals whose bounds are out of order: 1 <= floor <= default <= ceiling."""
    bounds = {
        "min_interval": (
            load.min_interval_floor_ms,
            load.min_interval_default_ms,
            load.min_interval_ceiling_ms,
        ),
        "heartbeat": (
            load.heartbeat_floor_ms,
            load.heartbeat_default_ms,
            load.heartbeat_ceiling_ms,
        ),
    }
    return tuple(
        name
        for name, (floor, default, ceiling) in bounds.items()
        if not 1 <= floor <= default <= ceiling
    )


def declared_pair(declared: Declared) -> Pair | None:
    """Epoch and revision of the declarations, None on engines that declare nothing."""
    scope = declared.engine_scope
    return None if scope is None else (scope.configuration_epoch, scope.capability_revision)


def combined(rulings: Iterable[Ruling]) -> Ruling:
    """The first breach; else True when something was judged, None when nothing was."""
    judged: Ruling = None
    for ruling in rulings:
        if isinstance(ruling, Finding):
            return ruling
        judged = judged or ruling
    return judged
