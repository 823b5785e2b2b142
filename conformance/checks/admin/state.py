"""GetAdminState and what it tells, what is served while paused, operations that are not listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import grpc
from google.protobuf.message import Message

from conformance.checks.admin.admin_calls import (
    INFERENCE,
    STATE,
    admin_state,
    each_mode,
    granted,
    mode_name,
    pause,
    resumed,
    scheduler_name,
)
from conformance.checks.check import check
from conformance.checks.core.abort_run import margin
from conformance.checks.core.discovery_calls import Read, answer, capabilities
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import (
    ADMIN,
    HEALTH_CHECK,
    OBSERVABILITY,
    busy,
    idle,
    paused,
    serving,
)
from conformance.model.case import Case
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import health, v1
from oe_wire.services import METHODS

# Seconds within which Inference must be NOT_SERVING once a pause is granted.
PAUSED_SECONDS = 1.0
MANDATORY = (v1.ADMIN_OPERATION_PAUSE, v1.ADMIN_OPERATION_RESET_CACHE)
# A name that no engine gives to a tag, a transport or an update: where the RPC is served it is
# refused, and nothing happens.
NOTHING = "oe-conform-none"
OPTIONAL: dict[int, tuple[tuple[str, Message], ...]] = {
    v1.ADMIN_OPERATION_DRAIN: (("Drain", v1.DrainRequest()),),
    v1.ADMIN_OPERATION_SLEEP: (
        ("Sleep", v1.SleepRequest(tags=[NOTHING], mode=v1.PAUSE_MODE_ABORT)),
        ("WakeUp", v1.WakeUpRequest(tags=[NOTHING])),
    ),
    v1.ADMIN_OPERATION_WEIGHT_UPDATE: (
        ("BeginWeightUpdate", v1.BeginWeightUpdateRequest(backend=NOTHING)),
        ("ApplyWeightUpdate", v1.ApplyWeightUpdateRequest(update_id=NOTHING)),
        ("FinishWeightUpdate", v1.FinishWeightUpdateRequest(update_id=NOTHING)),
    ),
    v1.ADMIN_OPERATION_PROFILE: (
        ("StartProfile", v1.StartProfileRequest()),
        ("StopProfile", v1.StopProfileRequest()),
    ),
}


@check(
    "OE-ADM-001",
    advice="List PAUSE and RESET_CACHE, and leave the RPCs of operations that you do not list "
    "unregistered.",
)
def operations_listed(probe: Probe, _: Case) -> None:
    """The mandatory operations are listed; RPCs of unlisted ones are UNIMPLEMENTED."""
    scope = capabilities(probe)
    operations = set(scope.message.admin.operations)
    for operation in MANDATORY:
        if operation not in operations:
            name = v1.AdminOperation.Name(operation)
            probe.fail(f"{name} in admin.operations", "a list without it", scope.call)
    with resumed(probe):
        for operation, calls in OPTIONAL.items():
            for rpc, request in calls if operation not in operations else ():
                call = _short(probe, f"{ADMIN}/{rpc}", request)
                name = v1.AdminOperation.Name(operation)
                because = f"{name} is not in admin.operations"
                probe.expect_rejected(call, grpc.StatusCode.UNIMPLEMENTED, because=because)


def _short(probe: Probe, name: str, request: Message) -> Transcript:
    """One call; a stream is cancelled after its first message."""
    live = probe.start(name, request)
    if METHODS[name].server_streaming and live.wait_event(1, timeout=probe.pace.unary_limit()):
        live.cancel()
    return probe.finish(live)


@check(
    "OE-ADM-002",
    advice="Answer GetAdminState from memory in every state, and count admin_revision up where its "
    "other fields are assigned, only when one of them changes.",
)
def revision_counts_changes(probe: Probe, _: Case) -> None:
    """admin_revision grows with every other content, and stays while nothing happens."""
    if not idle(probe):
        probe.skip("the engine is busy with other requests")
    reads = list(_states(probe))
    for (before, _quiet), (after, quiet) in pairwise(reads):
        old, new = before.message.admin_revision, after.message.admin_revision
        same = _content(before.message) == _content(after.message)
        if new < old or (new == old and not same):
            wanted = f"admin_revision above {old} with another content"
            probe.fail(wanted, f"{new}", after.call)
        if quiet and same and new != old:
            probe.fail(f"admin_revision {old} while nothing happens", f"{new}", after.call)


def _states(probe: Probe) -> Iterator[tuple[Read[v1.AdminState], bool]]:
    """Reads of the state around changes, and whether nothing happened since the one before."""
    yield _answered(probe), False
    yield _answered(probe), True
    with paused(probe):
        yield _answered(probe), False
        yield _answered(probe), True
    yield _answered(probe), False
    yield _answered(probe), True
    if probe.declared.generates:
        with busy(probe):
            yield _answered(probe), False


def _answered(probe: Probe) -> Read[v1.AdminState]:
    call = probe.call(STATE, v1.GetAdminStateRequest())
    state = answer(call, v1.AdminState)
    if state is None:
        probe.fail("an answer from GetAdminState in every state", describe(call), call)
    return Read(state, call)


def _content(state: v1.AdminState) -> v1.AdminState:
    bare = v1.AdminState()
    bare.CopyFrom(state)
    bare.ClearField("admin_revision")
    return bare


@check(
    "OE-ADM-003",
    table=each_mode,
    advice="Answer PauseGeneration only when the scheduler has stopped and the health service has "
    "been told.",
)
def pause_in_force(probe: Probe, case: Case) -> None:
    """When PauseGeneration answers, the engine is PAUSED and Inference NOT_SERVING."""
    mode = case.params["mode"]
    with resumed(probe):
        call = pause(probe, mode)
        state = granted(probe, call)
        if state.scheduler != v1.SCHEDULER_STATE_PAUSED:
            wanted = f"PAUSED in the answer to a pause by {mode_name(mode)}"
            probe.fail(wanted, scheduler_name(state), call)
        now = admin_state(probe)
        if now.message.scheduler != v1.SCHEDULER_STATE_PAUSED:
            probe.fail("PAUSED after the pause", scheduler_name(now.message), now.call)
        limit = probe.pace.required(PAUSED_SECONDS) + margin(probe)
        if not probe.wait_until(lambda: serving(probe, INFERENCE) == "NOT_SERVING", limit):
            wanted = f"NOT_SERVING for Inference within {PAUSED_SECONDS:g} s of the pause"
            probe.fail(wanted, serving(probe, INFERENCE))


def _served(declared: Declared) -> dict[str, Message]:
    """What must answer while paused, by full RPC name."""
    model = declared.model_name
    calls: dict[str, Message] = {
        "openengine.v1.OpenEngineDiscovery/GetEngineInfo": v1.GetEngineInfoRequest(),
        "openengine.v1.OpenEngineDiscovery/GetCapabilities": v1.GetCapabilitiesRequest(model=model),
        "openengine.v1.OpenEngineDiscovery/GetModelInfo": v1.GetModelInfoRequest(model=model),
        STATE: v1.GetAdminStateRequest(),
        HEALTH_CHECK: health.HealthCheckRequest(service=ADMIN),
    }
    if "scheduling_load" in declared.profiles:
        calls[f"{OBSERVABILITY}/GetLoad"] = v1.GetLoadRequest()
        calls[f"{OBSERVABILITY}/WatchLoad"] = v1.WatchLoadRequest()
    return calls


def _served_cases(declared: Declared) -> Iterable[Case]:
    return [Case(params={"method": method}) for method in _served(declared)]


@check(
    "OE-ADM-011",
    table=_served_cases,
    advice="Let a pause close the data plane only: clients that find an engine paused must be able "
    "to read what it is, how loaded it is, and to resume it.",
)
def served_while_paused(probe: Probe, case: Case) -> None:
    """Discovery, load and administration answer while paused as they do before."""
    method = case.params["method"]
    request = _served(probe.declared)[method]
    before = _first(probe, method, request)
    if not before.events:
        probe.skip(f"{method} does not answer a running engine's clients: {describe(before)}")
    with paused(probe):
        during = _first(probe, method, request)
    if not during.events:
        probe.fail(f"an answer from {method} while paused", describe(during), during)


def _first(probe: Probe, method: str, request: Message) -> Transcript:
    live = probe.start(method, request)
    if live.wait_event(1, timeout=probe.pace.unary_limit()) and METHODS[method].server_streaming:
        live.cancel()
    return probe.finish(live)
