"""openengine.v1.OpenEngineObservability, and the GetLoad that Control shares with it."""

from typing import Any, TypeAlias

import grpc

from oe_wire import v1
from reference_engine.server.load_watcher import Watcher
from reference_engine.server.rejection import Rejection, refuse
from reference_engine.server.watch_load import SHUTTING_DOWN, LoadWatch

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class ObservabilityServicer:
    """Answers whether or not the engine takes requests; runtime_events is UNIMPLEMENTED."""

    def __init__(self, watch: LoadWatch) -> None:
        self._watch = watch

    async def GetLoad(self, request: v1.GetLoadRequest, _context: Context) -> v1.LoadInfo:
        """The load now."""
        return self._watch.load(include_per_rank=request.include_per_rank)

    async def WatchLoad(self, request: v1.WatchLoadRequest, context: Context) -> None:
        """Settings, then snapshots and heartbeats until cancelled."""
        watcher = self._watch.open(request)
        if isinstance(watcher, Rejection):
            await refuse(context, watcher)
        try:
            await _write_all(watcher, context)
        finally:
            self._watch.release(watcher)
        if not watcher.failed:
            await refuse(context, SHUTTING_DOWN)


async def _write_all(watcher: Watcher, context: Context) -> None:
    """One write at a time: a reader that does not read holds up this call and nothing else."""
    while (response := await watcher.next()) is not None:
        await context.write(response)
