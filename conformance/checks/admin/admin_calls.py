"""Admin calls as the checks need them; whatever a check does, the engine runs again after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from conformance.checks.core.abort_run import margin
from conformance.checks.core.discovery_calls import Read, answer, read
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import ADMIN, pause_modes, undo
from conformance.model.case import Case
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Transcript
from oe_wire import v1

STATE = f"{ADMIN}/GetAdminState"
PAUSE = f"{ADMIN}/PauseGeneration"
RESUME = f"{ADMIN}/ResumeGeneration"
RESET = f"{ADMIN}/ResetCache"
INFERENCE = "openengine.v1.Inference"


@contextmanager
def resumed(probe: Probe) -> Iterator[None]:
    """The engine is resumed after the block, whatever state the block leaves it in."""
    try:
        yield
    finally:
        undo(probe, RESUME, v1.ResumeGenerationRequest())


def pause(probe: Probe, mode: int, **fields: Any) -> Transcript:
    """One PauseGeneration call, however it ends."""
    return probe.call(PAUSE, v1.PauseGenerationRequest(mode=mode, **fields))


def granted(probe: Probe, call: Transcript) -> v1.AdminState:
    """The state that an admin call answered; skip when it failed, which its own row judges."""
    state = answer(call, v1.AdminState)
    if state is None:
        probe.skip(f"{call.method} was not granted: {describe(call)}")
    return state


def admin_state(probe: Probe) -> Read[v1.AdminState]:
    """GetAdminState; skip when it fails."""
    return read(probe, STATE, v1.GetAdminStateRequest(), v1.AdminState)


def listed(probe: Probe, mode: int) -> None:
    """Skip unless the pause mode is listed."""
    if mode not in pause_modes(probe):
        probe.skip(f"{mode_name(mode)} is not among pause_modes")


def mode_name(mode: int) -> str:
    """A pause mode without its prefix."""
    return v1.PauseMode.Name(mode).removeprefix("PAUSE_MODE_")


def scheduler_name(state: v1.AdminState) -> str:
    """The scheduler's state without its prefix; the number of an unknown one."""
    value = v1.SchedulerState.DESCRIPTOR.values_by_number.get(state.scheduler)
    return str(state.scheduler) if value is None else value.name.removeprefix("SCHEDULER_STATE_")


def each_mode(declared: Declared) -> Iterable[Case]:
    """A case for each listed pause mode."""
    scope = declared.engine_scope
    modes = () if scope is None else scope.admin.pause_modes
    return [Case(params={"mode": mode}) for mode in dict.fromkeys(modes) if mode]


def ended(probe: Probe, live: LiveCall, seconds: float) -> bool:
    """Whether a stream ends within the seconds that a row states, widened for slow machines."""
    return live.wait_end(probe.pace.required(seconds) + margin(probe))
