"""Discovery over the life of an engine: after a restart, and while generation is paused."""

from __future__ import annotations

import grpc
from google.protobuf.message import Message

from conformance.checks.check import check
from conformance.checks.core.abort_run import margin
from conformance.checks.core.discovery_calls import engine_facts
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import paused, restart
from conformance.model.case import Case
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Seconds within which discovery answers a paused engine's clients.
ANSWER_SECONDS = 1.0


@check(
    "OE-CORE-DISC-009",
    advice="Draw instance_id at random when the process starts; host name and port stay the same "
    "over a restart.",
)
def restart_renews_instance(probe: Probe, _: Case) -> None:
    """A restarted engine has another instance_id."""
    before = engine_facts(probe).message.instance_id
    restart(probe)
    after = engine_facts(probe)
    if after.message.instance_id == before:
        probe.fail("another instance_id after the restart", "the one before it", after.call)


def _discovery(probe: Probe) -> dict[str, Message]:
    model = probe.declared.model_name
    return {
        "GetCapabilities": v1.GetCapabilitiesRequest(model=model),
        "GetEngineInfo": v1.GetEngineInfoRequest(),
        "GetModelInfo": v1.GetModelInfoRequest(model=model),
    }


@check(
    "OE-CORE-DISC-022",
    advice="Answer discovery from memory, on a thread that the paused scheduler does not hold.",
)
def discovery_while_paused(probe: Probe, _: Case) -> None:
    """Discovery answers a paused engine's clients within a second."""
    limit = probe.pace.required(ANSWER_SECONDS) + margin(probe)
    requests = _discovery(probe)
    running = {
        name: probe.call(f"OpenEngineDiscovery/{name}", request)
        for name, request in requests.items()
    }
    with paused(probe):
        for name, request in requests.items():
            if not running[name].ending.ok:
                continue  # that it answers at all is the matter of other rows
            # Twice, since a busy machine may hold up one call.
            calls = [_timed(probe, name, request, limit)]
            if _late(calls[-1]):
                calls.append(_timed(probe, name, request, limit))
            if _late(calls[-1]):
                wanted = f"{name} within {ANSWER_SECONDS:g} s while paused"
                probe.fail(wanted, describe(calls[-1]), calls[-1])


def _timed(probe: Probe, name: str, request: Message, limit: float) -> Transcript:
    return probe.call(f"OpenEngineDiscovery/{name}", request, deadline=limit)


def _late(call: Transcript) -> bool:
    return call.ending.code is grpc.StatusCode.DEADLINE_EXCEEDED
