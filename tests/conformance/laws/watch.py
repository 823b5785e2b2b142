"""Builds transcripts of WatchLoad calls by hand, with times on the engine's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import grpc

from conformance.laws import Finding, Ruling, judge
from conformance.laws.load_stream import NANOS_PER_MS, WATCH_LOAD
from conformance.wire.declared import Declared, TargetClass
from conformance.wire.transcript import Action, ActionKind, Ending, Event, Origin, Transcript
from oe_wire import v1

CANCELLED = Ending(99.0, grpc.StatusCode.CANCELLED, "", Origin.LOCAL)
START = 1_700_000_000_000 * NANOS_PER_MS
FLOOR, DEFAULT, CEILING = 10, 100, 1_000
BEAT_FLOOR, BEAT_DEFAULT, BEAT_CEILING = 500, 1_000, 60_000


def bounds() -> v1.LoadCapabilities:
    """Limits with different values everywhere."""
    return v1.LoadCapabilities(
        min_interval_floor_ms=FLOOR,
        min_interval_default_ms=DEFAULT,
        min_interval_ceiling_ms=CEILING,
        heartbeat_floor_ms=BEAT_FLOOR,
        heartbeat_default_ms=BEAT_DEFAULT,
        heartbeat_ceiling_ms=BEAT_CEILING,
    )


def declared(limits: v1.LoadCapabilities | None = None) -> Declared:
    """An engine with these limits, or those of `bounds`."""
    scope = v1.Capabilities(configuration_epoch=1, capability_revision=1)
    scope.observability.load.CopyFrom(limits or bounds())
    return Declared(TargetClass.PROFILE_AWARE, "v0.1.0", engine_scope=scope)


def settings(
    interval: int = FLOOR, beat: int = BEAT_FLOOR, *, clamped: bool = False, raised: bool = False
) -> v1.WatchLoadResponse:
    """Granted intervals; the flags of the first and of the second."""
    return v1.WatchLoadResponse(
        settings=v1.WatchLoadSettings(
            effective_min_interval_ms=interval,
            effective_heartbeat_interval_ms=beat,
            initial_snapshot=True,
            min_interval_clamped=clamped,
            heartbeat_interval_clamped=raised,
        )
    )


def snapshot(running: int = 0, *, initial: bool = False) -> v1.WatchLoadResponse:
    """A load of three fields and one rank."""
    load = v1.LoadInfo(instance_id="i", running_requests=running, queued_requests=0)
    load.ranks.add(data_parallel_rank=0, running_requests=running)
    return v1.WatchLoadResponse(snapshot=v1.LoadSnapshot(load=load, initial=initial))


def heartbeat() -> v1.WatchLoadResponse:
    """One that names the last snapshot, which `stream` fills in."""
    response = v1.WatchLoadResponse()
    response.heartbeat.SetInParent()
    return response


def failure() -> v1.WatchLoadResponse:
    """A terminal error."""
    return v1.WatchLoadResponse(error=v1.EngineError(code=v1.ERROR_CODE_INTERNAL))


@dataclass
class Stream:
    """A right stream: numbers, times and names of snapshots follow from what is put on it."""

    request: v1.WatchLoadRequest
    responses: list[v1.WatchLoadResponse] = field(default_factory=list)
    last: int = 0
    named: int = 0
    end: Ending = CANCELLED
    # Seconds from the start to the client's cancellation; None = it did not cancel.
    cancelled: float | None = 0.0

    def put(self, response: v1.WatchLoadResponse, at_ms: float, lost: int = 0) -> Stream:
        """Send a response `at_ms` after the settings; `lost` events were replaced before it."""
        self.last += lost + 1
        response.sequence_number = self.last
        response.coalesced_events = lost
        response.timestamp_unix_nanos = START + int(at_ms * NANOS_PER_MS)
        response.configuration_epoch = response.capability_revision = 1
        if response.HasField("snapshot"):
            response.snapshot.load.timestamp_unix_nanos = response.timestamp_unix_nanos
            self.named = self.last
        if response.HasField("heartbeat"):
            response.heartbeat.last_snapshot_sequence_number = self.named
        self.responses.append(response)
        return self

    def call(self) -> Transcript:
        """The finished call; each response arrives when it was made."""
        events = [Event(self._seconds(each), each) for each in self.responses]
        last = events[-1].seconds if events else 0.0
        actions: Sequence[Action] = ()
        if self.cancelled is not None:
            actions = (Action(max(last, self.cancelled), ActionKind.CANCEL),)
        return Transcript(
            WATCH_LOAD,
            self.request,
            self.request.SerializeToString(),
            (),
            tuple(events),
            self.end,
            tuple(actions),
        )

    def _seconds(self, response: v1.WatchLoadResponse) -> float:
        return max(0, response.timestamp_unix_nanos - START) / NANOS_PER_MS / 1000


def fast_request() -> v1.WatchLoadRequest:
    """Both intervals at their floor."""
    return v1.WatchLoadRequest(min_interval_ms=0, heartbeat_interval_ms=BEAT_FLOOR)


def usual() -> Stream:
    """Settings, an initial snapshot, two changes, of which one replaced another, two heartbeats."""
    return (
        Stream(fast_request())
        .put(settings(), 0)
        .put(snapshot(0, initial=True), 0)
        .put(snapshot(1), 12)
        .put(snapshot(2), 40, lost=1)
        .put(heartbeat(), 541)
        .put(heartbeat(), 1042)
    )


def rulings(call: Transcript, of: Declared | None = None) -> dict[str, Ruling]:
    """What each law of load streams says, by the number of its row (`020`)."""
    return {
        requirement.removeprefix("OE-LOAD-"): ruling
        for requirement, ruling in judge(call, of or declared()).items()
        if "OE-LOAD-020" <= requirement <= "OE-LOAD-049"
    }


def broken(call: Transcript, of: Declared | None = None) -> set[str]:
    """Rows whose law found a breach."""
    return {row for row, ruling in rulings(call, of).items() if isinstance(ruling, Finding)}


def kept(call: Transcript, of: Declared | None = None) -> set[str]:
    """Rows whose law judged the call and found nothing."""
    return {row for row, ruling in rulings(call, of).items() if ruling is True}
