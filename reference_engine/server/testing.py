"""openengine.v1.OpenEngineTesting: faults and changes on demand, for test runs only."""

from dataclasses import replace
from typing import Any, TypeAlias

import grpc

from oe_wire import v1
from reference_engine.server.frontend import Frontend
from reference_engine.server.rejection import UNAVAILABLE, Rejection, invalid, refuse

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

# Those that this engine has a place for: it has neither stages nor KV transfers.
KINDS = (
    v1.FAULT_KIND_REQUEST_FAILS,
    v1.FAULT_KIND_WORKER_FAILS,
    v1.FAULT_KIND_ENGINE_WEDGED,
    v1.FAULT_KIND_ABORT_REFUSED,
    v1.FAULT_KIND_OUT_OF_BLOCKS,
    v1.FAULT_KIND_EVENT_SOURCE_FAILS,
)
# A request with so many outputs still leaves the others a turn.
MOST_SEQUENCES = 1024


class TestingServicer:
    """Fields that mean nothing to a kind of fault are not looked at."""

    __test__ = False

    def __init__(self, frontend: Frontend) -> None:
        self._frontend = frontend

    async def InjectFault(
        self, request: v1.InjectFaultRequest, context: Context
    ) -> v1.InjectFaultResponse:
        """Arm a fault; one that hits a running request, or the whole engine, takes effect now."""
        frontend = self._frontend
        problem = UNAVAILABLE if frontend.draining else _problem(request)
        if problem is not None:
            await refuse(context, problem)
        fault = frontend.faults.arm(
            request.kind,
            request.request_id if request.HasField("request_id") else None,
            request.after_tokens,
            request.duration_ms if request.HasField("duration_ms") else None,
        )
        if fault.kind == v1.FAULT_KIND_ENGINE_WEDGED:
            frontend.engine.wedge(None if fault.duration_ms is None else fault.duration_ms / 1000)
        elif fault.kind == v1.FAULT_KIND_REQUEST_FAILS and fault.request_id is not None:
            stream = frontend.table.active(fault.request_id)
            if stream is not None:
                frontend.faults.disarm(fault)
                frontend.engine.fail_after(stream, fault.after_tokens)
        return v1.InjectFaultResponse(fault_id=fault.fault_id)

    async def ClearFaults(
        self, _request: v1.ClearFaultsRequest, _context: Context
    ) -> v1.ClearFaultsResponse:
        """Disarm every fault, those of running requests too."""
        frontend = self._frontend
        frontend.faults.clear()
        frontend.engine.unwedge()
        for stream in frontend.table.streams():
            frontend.engine.fail_after(stream, None)
        return v1.ClearFaultsResponse()

    async def Reconfigure(
        self, request: v1.ReconfigureRequest, context: Context
    ) -> v1.ReconfigureResponse:
        """Change what is legal for the requests that come from now on."""
        revisions = self._frontend.revisions
        limits = revisions.current.limits
        if request.HasField("supports_priority"):
            limits = replace(limits, supports_priority=request.supports_priority)
        if request.HasField("max_num_sequences"):
            if not 1 <= request.max_num_sequences <= MOST_SEQUENCES:
                await refuse(
                    context, invalid(f"max_num_sequences is out of range, 1 to {MOST_SEQUENCES}")
                )
            limits = replace(limits, max_num_sequences=request.max_num_sequences)
        deployment = revisions.change(limits)
        return v1.ReconfigureResponse(
            configuration_epoch=deployment.configuration_epoch,
            capability_revision=deployment.capability_revision,
        )


def _problem(request: v1.InjectFaultRequest) -> Rejection | None:
    if request.kind not in KINDS:
        return invalid("kind is not one that this engine can fail with")
    if request.HasField("stage_id"):
        return invalid("stage_id is set, but this engine has no stages")
    if request.HasField("request_id") and not request.request_id:
        return invalid("request_id is empty, expected an id or no request_id")
    return None
