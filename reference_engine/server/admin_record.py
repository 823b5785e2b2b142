"""The AdminState message and its revision, which counts the changes of everything else in it."""

from dataclasses import dataclass

from oe_wire import v1
from reference_engine.server.frontend import Frontend
from reference_engine.server.pause import Phase

_SCHEDULER = {
    Phase.RUNNING: v1.SCHEDULER_STATE_RUNNING,
    Phase.PAUSING: v1.SCHEDULER_STATE_PAUSING,
    Phase.PAUSED: v1.SCHEDULER_STATE_PAUSED,
}


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields that change."""

    scheduler: int
    mode: int
    in_flight: int
    held: int


class AdminRecord:
    """Told of each change by `note`. Used on the event loop's thread only."""

    def __init__(self, frontend: Frontend) -> None:
        self._frontend = frontend
        self._fields = self._read()
        self._revision = 1

    def note(self) -> None:
        """Something has happened: a request came or went, a pause began or ended."""
        fields = self._read()
        if fields != self._fields:
            self._fields = fields
            self._revision += 1

    def message(self) -> v1.AdminState:
        """The state now. Nothing sleeps, no weights are updated, nothing is profiled."""
        self.note()
        fields = self._fields
        return v1.AdminState(
            instance_id=self._frontend.deployment.instance_id,
            scheduler=fields.scheduler,
            pause_mode=fields.mode,
            in_flight_requests=fields.in_flight,
            held_requests=fields.held,
            admin_revision=self._revision,
        )

    def _read(self) -> _Fields:
        frontend = self._frontend
        pause, active = frontend.pause, frontend.table.streams()
        scheduler = _SCHEDULER[pause.phase]
        if frontend.draining:
            scheduler = v1.SCHEDULER_STATE_DRAINING
        return _Fields(scheduler, pause.mode, len(active), pause.num_held(active))
