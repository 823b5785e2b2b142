"""Whether each advertised notice of a capability change really happens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import grpc
from google.protobuf.message import Message

from conformance.checks.check import check
from conformance.checks.probe import Probe
from conformance.checks.steering import reconfigured
from conformance.model.case import Case
from conformance.wire.connection import open_channel
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from oe_wire import health, v1
from oe_wire.services import METHODS

# Seconds within which a change must be noticed.
NOTICE_SECONDS = 5.0
WATCH_LOAD = "openengine.v1.OpenEngineObservability/WatchLoad"
RUNTIME_EVENTS = "openengine.v1.OpenEngineObservability/SubscribeRuntimeEvents"
HEALTH_WATCH = "grpc.health.v1.Health/Watch"


def _notices(declared: Declared) -> Iterable[Case]:
    scope = declared.engine_scope
    listed = () if scope is None else tuple(dict.fromkeys(scope.change_notices))
    known = v1.CapabilityChangeNotice.DESCRIPTOR.values_by_number
    return [Case(params={"notice": known[number].name}) for number in listed if number in known]


@check(
    "OE-CORE-CAP-016",
    table=_notices,
    advice="List only notices that are really given, and give each from the place that counts "
    "capability_revision up.",
)
def change_noticed(probe: Probe, case: Case) -> None:
    """The listed notice is given within 5 s of a change."""
    notice = case.params["notice"].removeprefix("CAPABILITY_CHANGE_NOTICE_")
    match notice:
        case "LOAD_STREAM":
            _on_stream(probe, WATCH_LOAD, v1.WatchLoadRequest(), _carries_pair)
        case "RUNTIME_EVENT":
            wanted = v1.RUNTIME_EVENT_TYPE_CAPABILITIES_CHANGED
            request = v1.SubscribeRuntimeEventsRequest(types=[wanted])
            _on_stream(probe, RUNTIME_EVENTS, request, _is_change)
        case "RECONNECT":
            _on_connection(probe)
        case _:
            probe.skip(f"{notice} is no notice")


def _carries_pair(message: Message, now: v1.ReconfigureResponse) -> bool:
    if not isinstance(message, v1.WatchLoadResponse):
        return False
    pair = message.configuration_epoch, message.capability_revision
    return pair >= (now.configuration_epoch, now.capability_revision)


def _is_change(message: Message, _: v1.ReconfigureResponse) -> bool:
    if not isinstance(message, v1.SubscribeRuntimeEventsResponse):
        return False
    return bool(message.runtime_event.type == v1.RUNTIME_EVENT_TYPE_CAPABILITIES_CHANGED)


def _on_stream(
    probe: Probe,
    method: str,
    request: Message,
    tells: Callable[[Message, v1.ReconfigureResponse], bool],
) -> None:
    """A message that comes on an open stream after the change tells of it."""
    stream = probe.start(method, request)
    stream.wait_event(1, timeout=probe.pace.required(1.0))
    with reconfigured(probe) as now:
        seen = probe.wait_until(
            lambda: any(tells(event.message, now) for event in stream.events), _limit(probe)
        )
    stream.cancel()
    call = probe.finish(stream)
    if not seen:
        wanted = f"a message on {method} that tells of the change within {NOTICE_SECONDS:g} s"
        probe.fail(wanted, f"{len(call.events)} messages without it", call)


def _on_connection(probe: Probe) -> None:
    """A connection is told to go away, or a subscription ends UNAVAILABLE, after the change."""
    requests: dict[str, Message] = {HEALTH_WATCH: health.HealthCheckRequest()}
    if "scheduling_load" in probe.declared.profiles:
        requests[WATCH_LOAD] = v1.WatchLoadRequest()
    streams = [probe.start(name, request) for name, request in requests.items()]
    for stream in streams:
        stream.wait_event(1, timeout=probe.pace.unary_limit())
    with _connection(probe) as gone, reconfigured(probe):
        probe.wait_until(
            lambda: gone.is_set() or any(stream.done for stream in streams), _limit(probe)
        )
        noticed = gone.is_set() or any(_turned_away(stream) for stream in streams)
    for stream in streams:
        stream.cancel()
        probe.finish(stream)
    if not noticed:
        probe.fail(
            f"GOAWAY on an open connection or UNAVAILABLE on a subscription within "
            f"{NOTICE_SECONDS:g} s of the change",
            "neither",
        )


def _turned_away(stream: LiveCall) -> bool:
    return stream.done and stream.finish().ending.code is grpc.StatusCode.UNAVAILABLE


@contextmanager
def _connection(probe: Probe) -> Iterator[threading.Event]:
    """An idle connection; the event is set when the server wants it closed."""
    ready, gone = threading.Event(), threading.Event()

    def changed(state: grpc.ChannelConnectivity) -> None:
        if state is grpc.ChannelConnectivity.READY:
            ready.set()
        elif ready.is_set():
            gone.set()

    connection = probe.connection
    address = connection.address_of(METHODS[HEALTH_WATCH])
    with open_channel(connection.target, address) as channel:
        channel.subscribe(changed, try_to_connect=True)
        ready.wait(probe.pace.unary_limit())
        yield gone
        channel.unsubscribe(changed)


def _limit(probe: Probe) -> float:
    """The row's limit, with what a loaded machine may add to it."""
    return probe.pace.required(NOTICE_SECONDS) + probe.pace.slow_factor * (
        1.0 + 20 * probe.pace.unary
    )
