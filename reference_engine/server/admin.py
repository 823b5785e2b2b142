"""openengine.v1.OpenEngineAdmin: the RPCs of the operations that this engine lists."""

from typing import Any, TypeAlias

import grpc

from oe_wire import v1
from reference_engine.server.administration import Administration
from reference_engine.server.description import CACHE_KINDS, PAUSE_MODES
from reference_engine.server.rejection import Rejection, invalid, refuse

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class AdminServicer:
    """RPCs of operations that are not listed are absent here, so they are UNIMPLEMENTED."""

    def __init__(self, administration: Administration) -> None:
        self._administration = administration

    async def GetAdminState(
        self, _request: v1.GetAdminStateRequest, _context: Context
    ) -> v1.AdminState:
        """The state now; waits for nothing."""
        return self._administration.state()

    async def PauseGeneration(
        self, request: v1.PauseGenerationRequest, context: Context
    ) -> v1.AdminState:
        """Pause; answers when the pause is in force."""
        mode = request.mode or v1.PAUSE_MODE_ABORT
        problem = _pause_problem(request, mode)
        if problem is not None:
            await refuse(context, problem)
        seconds = request.timeout_ms / 1000 if request.HasField("timeout_ms") else None
        clear_cache = request.reset_prefix_cache
        problem = await self._administration.pause(mode, clear_cache=clear_cache, seconds=seconds)
        return await self._answer(problem, context)

    async def ResumeGeneration(
        self, _request: v1.ResumeGenerationRequest, context: Context
    ) -> v1.AdminState:
        """Run again; answers when requests are taken."""
        return await self._answer(await self._administration.resume(), context)

    async def ResetCache(
        self, request: v1.ResetCacheRequest, context: Context
    ) -> v1.ResetCacheResponse:
        """Empty the caches; what running requests hold of them is spared."""
        unlisted = set(request.kinds) - set(CACHE_KINDS)
        if unlisted:
            await refuse(context, invalid("kinds has a kind that is not listed in cache_kinds"))
        problem = await self._administration.clear_cache()
        if problem is not None:
            await refuse(context, problem)
        return v1.ResetCacheResponse(reset=CACHE_KINDS)

    async def _answer(self, problem: Rejection | None, context: Context) -> v1.AdminState:
        if problem is not None:
            await refuse(context, problem)
        return self._administration.state()


def _pause_problem(request: v1.PauseGenerationRequest, mode: int) -> Rejection | None:
    if mode not in PAUSE_MODES:
        return invalid(f"mode is {mode}, expected one that is listed in pause_modes")
    if not request.HasField("timeout_ms"):
        return None
    if mode != v1.PAUSE_MODE_WAIT:
        return invalid("timeout_ms is set, expected it with mode WAIT only")
    if not request.timeout_ms:
        return invalid("timeout_ms is 0, expected at least 1, or no timeout_ms for no limit")
    return None
