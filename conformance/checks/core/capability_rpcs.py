"""Which RPCs exist: none of a profile that is not advertised, all of one that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext

import grpc
from google.protobuf.message import Message

from conformance.checks.check import check
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import ADMIN, paused
from conformance.model.case import Case
from conformance.model.expression import evaluate
from conformance.model.registry import default_registry
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1
from oe_wire.services import METHODS

UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
# Statuses of an RPC that is there and looked at the request.
VALIDATED = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.OUT_OF_RANGE,
    }
)
# UNIMPLEMENTED comes at once; a stream that is still silent after this many seconds is served.
SILENT_SECONDS = 1.0
PACKAGE = "openengine.v1."
CONTROL_LIST_LORAS = f"{PACKAGE}Control/ListLoras"
# RPCs that belong to one optional profile only, with requests that do no harm where they are
# served. Control.GetLoad and Control.GetKvEventSources are not among them: v0.1.0 engines serve
# both without any profile.
ASKED: Mapping[str, tuple[tuple[str, Message], ...]] = {
    "scheduling_load": ((f"{PACKAGE}OpenEngineObservability/WatchLoad", v1.WatchLoadRequest()),),
    "runtime_events": (
        (
            f"{PACKAGE}OpenEngineObservability/SubscribeRuntimeEvents",
            v1.SubscribeRuntimeEventsRequest(),
        ),
    ),
    "kv_handoff": (
        (
            f"{PACKAGE}OpenEngineKv/ReleaseKvSession",
            v1.ReleaseKvSessionRequest(session_id="never-opened"),
        ),
    ),
    "kv_events": ((f"{PACKAGE}OpenEngineKv/GetKvEventSources", v1.GetKvEventSourcesRequest()),),
    "adapters": (
        (f"{PACKAGE}OpenEngineAdapters/ListLoras", v1.ListLorasRequest()),
        (CONTROL_LIST_LORAS, v1.ListLorasRequest()),
    ),
    "admin": ((f"{ADMIN}/GetAdminState", v1.GetAdminStateRequest()),),
    "tasks": ((f"{PACKAGE}OpenEngineTasks/Embed", v1.EmbedRequest()),),
    "encoder": (
        (
            f"{PACKAGE}OpenEngineEncoder/ReleaseEncoderOutputs",
            v1.ReleaseEncoderOutputsRequest(),
        ),
    ),
    "sessions": (
        (
            f"{PACKAGE}OpenEngineSessions/GetSession",
            v1.GetSessionRequest(session_id="never-opened"),
        ),
    ),
    "orchestration": ((f"{PACKAGE}OpenEngineOrchestration/GetPipeline", v1.GetPipelineRequest()),),
    "testing": ((f"{PACKAGE}OpenEngineTesting/ClearFaults", v1.ClearFaultsRequest()),),
}
# Requests for required RPCs that must not be sent empty: an empty one would pause the engine or
# clear its caches. These are refused where they are served.
REFUSED: Mapping[str, Message] = {
    f"{ADMIN}/PauseGeneration": v1.PauseGenerationRequest(mode=v1.PAUSE_MODE_ABORT, timeout_ms=0),
    f"{ADMIN}/ResetCache": v1.ResetCacheRequest(kinds=[v1.CACHE_KIND_UNSPECIFIED]),
}
RESUME = f"{ADMIN}/ResumeGeneration"


def _unadvertised(declared: Declared) -> Iterable[Case]:
    names = sorted(ASKED.keys() - declared.profiles)
    return [Case(params={"profile": name}) for name in names]


@check(
    "OE-CORE-CAP-007",
    table=_unadvertised,
    advice="Register only the services of advertised profiles, or answer UNIMPLEMENTED from the "
    "others; if the RPC is meant to work, advertise its profile.",
)
def unadvertised_absent(probe: Probe, case: Case) -> None:
    """An RPC of a profile that is not advertised is UNIMPLEMENTED; one that works is a warning."""
    profile = case.params["profile"]
    served: Transcript | None = None
    for name, request in ASKED[profile]:
        call = _ask(probe, name, request)
        if call.rejected and call.ending.code is UNIMPLEMENTED:
            continue
        disabled = call.rejected and call.ending.code is grpc.StatusCode.FAILED_PRECONDITION
        if disabled and name == CONTROL_LIST_LORAS:
            continue  # the v0.1.0 answer of an engine without adapters
        if not (call.accepted or call.actions or call.ending.code in VALIDATED):
            wanted = f"UNIMPLEMENTED: {profile} is not advertised"
            probe.fail(wanted, describe(call), call)
        served = call
    if served is not None:
        wanted = f"UNIMPLEMENTED from {served.method}: {profile} is not advertised"
        probe.tolerate(wanted, f"it is served: {describe(served)}", served)


def _ask(probe: Probe, name: str, request: Message) -> Transcript:
    """One call; a stream is cancelled after its first message or a short silence."""
    if not METHODS[name].server_streaming:
        return probe.call(name, request)
    live = probe.start(name, request)
    live.wait_event(1, timeout=probe.pace.required(SILENT_SECONDS))
    live.cancel()
    return probe.finish(live)


def _states(declared: Declared) -> Iterable[Case]:
    states = ("running", "paused") if "admin" in declared.profiles else ("running",)
    return [Case(params={"state": state}) for state in states]


@check(
    "OE-CORE-CAP-008",
    table=_states,
    advice="Implement every required RPC of a profile before advertising it; while it can't run, "
    "answer UNAVAILABLE or FAILED_PRECONDITION.",
)
def advertised_present(probe: Probe, case: Case) -> None:
    """No required RPC of an advertised profile is UNIMPLEMENTED, paused or not."""
    with paused(probe) if case.params["state"] == "paused" else nullcontext():
        for name in _required(probe.declared):
            request = REFUSED.get(name, METHODS[name].request())
            call = _ask(probe, name, request)
            if call.ending.code is UNIMPLEMENTED:
                probe.fail(f"{name} to be served", "UNIMPLEMENTED", call)


def _required(declared: Declared) -> Iterator[str]:
    """Full names of the RPCs that the advertised profiles require of this engine.

    ResumeGeneration comes last: it ends the pause.
    """
    advertised = (
        (name, rpc)
        for profile in default_registry().profiles
        if profile.name in declared.profiles
        for name, rpc in profile.methods()
    )
    names = dict.fromkeys(
        name for name, rpc in advertised if rpc.required and evaluate(rpc.when, declared)
    )
    yield from (name for name in names if name != RESUME)
    if RESUME in names:
        yield RESUME
