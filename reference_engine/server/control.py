"""openengine.v1.Control: identity, diagnostics, and the one abort for every request."""

import asyncio
from typing import Any, TypeAlias

import grpc

from oe_wire import v1
from reference_engine.server.adapters import AdapterRpcs
from reference_engine.server.description import server_info
from reference_engine.server.discovery import get_model_info
from reference_engine.server.frontend import Frontend
from reference_engine.server.inference_probe import InferenceProbe
from reference_engine.server.rejection import (
    UNKNOWN_REQUEST,
    Rejection,
    invalid,
    model_not_found,
    refuse,
)
from reference_engine.server.watch_load import LoadWatch

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

# An abort is applied between two steps; this is far above the longest step.
ABORT_SECONDS = 20.0

NO_SESSIONS = Rejection(
    grpc.StatusCode.UNIMPLEMENTED, 0, "kv_session cannot be aborted: this engine has no sessions"
)
NO_ANSWER = Rejection(
    grpc.StatusCode.DEADLINE_EXCEEDED,
    v1.ERROR_CODE_INTERNAL,
    f"the engine did not take the abort within {ABORT_SECONDS:.0f} s",
    retryable=True,
)
REFUSED = Rejection(
    grpc.StatusCode.INTERNAL,
    v1.ERROR_CODE_INTERNAL,
    "the abort could not be carried out: a fault of a test run",
)
PAUSED = (v1.HEALTH_STATE_NOT_READY, "generation is paused")

# From good to bad; the state of the engine is the worst of its checks.
SEVERITY = (
    v1.HEALTH_STATE_READY,
    v1.HEALTH_STATE_DEGRADED,
    v1.HEALTH_STATE_STARTING,
    v1.HEALTH_STATE_NOT_READY,
)
OTHER_ROLES = (v1.ENGINE_ROLE_PREFILL, v1.ENGINE_ROLE_DECODE)


class ControlServicer(AdapterRpcs):
    """RPCs of profiles that the engine lacks are absent here, so they are UNIMPLEMENTED."""

    def __init__(self, frontend: Frontend, watch: LoadWatch) -> None:
        super().__init__(frontend.adapters)
        self._frontend = frontend
        self._watch = watch
        self._probe = InferenceProbe(frontend)

    async def GetServerInfo(
        self, _request: v1.GetServerInfoRequest, _context: Context
    ) -> v1.ServerInfo:
        """Identity and capacity."""
        return server_info(self._frontend.deployment)

    async def GetModelInfo(self, request: v1.GetModelInfoRequest, context: Context) -> v1.ModelInfo:
        """The same as OpenEngineDiscovery.GetModelInfo."""
        return await get_model_info(self._frontend.deployment, request, context)

    async def GetLoad(self, request: v1.GetLoadRequest, _context: Context) -> v1.LoadInfo:
        """The same as OpenEngineObservability.GetLoad."""
        return self._watch.load(include_per_rank=request.include_per_rank)

    async def Health(self, request: v1.HealthRequest, context: Context) -> v1.HealthResponse:
        """Diagnostics; runs one token through the model only when asked to."""
        if request.model and request.model not in self._frontend.deployment.model.names:
            await refuse(context, model_not_found("model"))
        checks = [self._engine_check()]
        if request.role in OTHER_ROLES:
            message = "the engine's role is AGGREGATED"
            checks.append(_check("role", v1.HEALTH_STATE_NOT_READY, message))
        if request.include_inference_probe:
            state, message = PAUSED
            if not self._frontend.pause.closed:
                state, message = await self._probe.run()
            checks.append(_check("inference_probe", state, message))
        worst = max((check.state for check in checks), key=SEVERITY.index)
        return v1.HealthResponse(state=worst, checks=checks)

    def _engine_check(self) -> v1.HealthCheck:
        if self._frontend.serving:
            return _check("engine", v1.HEALTH_STATE_READY, "")
        reason = "the engine core has ended"
        if self._frontend.draining:
            reason = "shutting down"
        elif self._frontend.pause.closed and self._frontend.engine.healthy:
            reason = "generation is paused"
        elif self._frontend.engine.alive:
            reason = "the latest steps of the engine have all failed"
        return _check("engine", v1.HEALTH_STATE_NOT_READY, reason)

    async def Abort(self, request: v1.AbortRequest, context: Context) -> v1.AbortResponse:
        """End one request or all; answers once the engine has done it."""
        target = request.WhichOneof("target")
        if target is None:
            await refuse(context, invalid("target is not set, expected one"))
        if target == "kv_session":
            await refuse(context, NO_SESSIONS)
        if target == "request_id" and not request.request_id:
            await refuse(context, invalid("request_id is empty, expected the id of a request"))
        if self._refused(request):
            await refuse(context, REFUSED)
        try:
            async with asyncio.timeout(ABORT_SECONDS):
                if target == "all_requests":
                    return await self._abort_all()
                return await self._abort_one(request.request_id, context)
        except TimeoutError:
            await refuse(context, NO_ANSWER)

    def _refused(self, request: v1.AbortRequest) -> bool:
        """Whether a fault of a test run hits the abort of one of the requests meant."""
        frontend = self._frontend
        ids = frontend.table.ids()
        if request.HasField("request_id"):
            ids &= {request.request_id}
        kind = v1.FAULT_KIND_ABORT_REFUSED
        return any(frontend.faults.take(kind, request_id) for request_id in ids)

    async def _abort_all(self) -> v1.AbortResponse:
        engine = self._frontend.engine
        streams = self._frontend.table.streams()
        return _abort_response(aborted=any(await asyncio.gather(*map(engine.abort, streams))))

    async def _abort_one(self, request_id: str, context: Context) -> v1.AbortResponse:
        table = self._frontend.table
        stream = table.active(request_id)
        if stream is not None:
            return _abort_response(aborted=await self._frontend.engine.abort(stream))
        if not table.finished_recently(request_id):
            await refuse(context, UNKNOWN_REQUEST)
        return _abort_response(aborted=False)


def _abort_response(*, aborted: bool) -> v1.AbortResponse:
    if aborted:
        return v1.AbortResponse(status=v1.ABORT_STATUS_ABORTED)
    return v1.AbortResponse(status=v1.ABORT_STATUS_ALREADY_FINISHED)


def _check(name: str, state: int, message: str) -> v1.HealthCheck:
    return v1.HealthCheck(name=name, state=state, message=message)
