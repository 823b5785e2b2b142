"""What waits for one reader of a load stream: never more than one event, however slow it reads."""

from dataclasses import dataclass
from typing import NamedTuple

from oe_wire import v1


class Moment(NamedTuple):
    """When an event was produced (Unix time in nanoseconds), and the pair that held then."""

    unix_nanos: int
    epoch: int
    revision: int


@dataclass(frozen=True, slots=True)
class Event:
    """A produced event and its number. body: LoadInfo for a snapshot, None for a heartbeat."""

    number: int
    moment: Moment
    body: v1.WatchLoadSettings | v1.LoadInfo | v1.EngineError | None


class LoadSlot:
    """Numbers the events of a stream and keeps the newest that has not been taken.

    A newer snapshot replaces an older one that still waits; the gap in the numbers is told with
    the next event that is taken. Settings and the error are never replaced.
    """

    def __init__(self, instance_id: str, settings: v1.WatchLoadSettings, moment: Moment) -> None:
        self._instance_id = instance_id
        self._initial = settings.initial_snapshot
        self._produced = 1
        self._taken = 0
        self._last_snapshot = 0
        self._settings: Event | None = Event(1, moment, settings)
        self._newest: Event | None = None
        self._error: Event | None = None
        self._ended = False

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not (self._settings or self._newest or self._error)

    @property
    def ended(self) -> bool:
        """Whether the error has been put: nothing may follow."""
        return self._ended

    def put_snapshot(self, load: v1.LoadInfo, moment: Moment) -> None:
        """Produce a snapshot; it takes the place of one that waits."""
        self._newest = self._number(moment, load)

    def put_heartbeat(self, moment: Moment) -> None:
        """Produce a heartbeat. Only for an empty slot: what waits is itself a sign of life."""
        self._newest = self._number(moment, None)

    def put_error(self, error: v1.EngineError, moment: Moment) -> None:
        """Produce the last event, which comes after what waits."""
        self._error = self._number(moment, error)
        self._ended = True

    def take(self) -> v1.WatchLoadResponse:
        """The next event for the reader. Only when not empty."""
        event = self._settings or self._newest or self._error
        if event is None:
            raise LookupError("the slot is empty")
        if event is self._settings:
            self._settings = None
        elif event is self._newest:
            self._newest = None
        else:
            self._error = None
        return self._response(event)

    def _number(self, moment: Moment, body: v1.LoadInfo | v1.EngineError | None) -> Event:
        self._produced += 1
        return Event(self._produced, moment, body)

    def _response(self, event: Event) -> v1.WatchLoadResponse:
        response = v1.WatchLoadResponse(
            sequence_number=event.number,
            timestamp_unix_nanos=event.moment.unix_nanos,
            instance_id=self._instance_id,
            configuration_epoch=event.moment.epoch,
            capability_revision=event.moment.revision,
            coalesced_events=event.number - self._taken - 1,
        )
        self._taken = event.number
        match event.body:
            case v1.WatchLoadSettings():
                response.settings.CopyFrom(event.body)
            case v1.EngineError():
                response.error.CopyFrom(event.body)
            case v1.LoadInfo():
                response.snapshot.load.CopyFrom(event.body)
                response.snapshot.initial = self._initial and not self._last_snapshot
                self._last_snapshot = event.number
            case None:
                response.heartbeat.last_snapshot_sequence_number = self._last_snapshot
        return response
