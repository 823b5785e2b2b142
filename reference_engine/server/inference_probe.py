"""One token through every rank of the engine, to see that it computes."""

import asyncio

from oe_wire import v1
from reference_engine.engine.output import Event, RequestFailed, is_last
from reference_engine.engine.request import Request, Sampling, Stopping
from reference_engine.engine.stream import Stream
from reference_engine.errors import EngineException
from reference_engine.server.frontend import Frontend

# Below the 60 s that a caller may expect an answer in, even from an engine that is stuck.
PROBE_SECONDS = 30.0
# Goes before everything that waits, so that a long queue does not look like a stuck engine.
FIRST = 2**31 - 1

Result = tuple[int, str]
READY: Result = (v1.HEALTH_STATE_READY, "")


class InferenceProbe:
    """Callers that ask at the same time share one run.

    It gives up when a rank computes nothing at all for `frontend.probe_seconds`, and when one
    computes other things for PROBE_SECONDS.
    """

    def __init__(self, frontend: Frontend) -> None:
        self._frontend = frontend
        self._running: asyncio.Task[Result] | None = None

    async def run(self) -> Result:
        """A HealthState and a message."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._probe())
        # A caller that goes away must not end the run of the others.
        return await asyncio.shield(self._running)

    async def _probe(self) -> Result:
        engine = self._frontend.engine
        if not engine.alive:
            return v1.HEALTH_STATE_NOT_READY, "the engine core has ended"
        results = await asyncio.gather(*map(self._probe_rank, range(len(engine))))
        return next((result for result in results if result != READY), READY)

    async def _probe_rank(self, rank: int) -> Result:
        engine = self._frontend.engine
        request = Request(
            prompt=(0,),
            sampling=Sampling(seed=0, temperature=0.0),
            stopping=Stopping(max_tokens=1),
            priority=FIRST,
        )
        stream = engine.submit(request, rank)
        end = asyncio.create_task(_last_event(stream))
        try:
            if not await self._ends(end, rank):
                return v1.HEALTH_STATE_DEGRADED, "the engine computed no token for the probe"
        finally:
            end.cancel()
            engine.cancel(stream)
        if isinstance(end.result(), RequestFailed):
            return v1.HEALTH_STATE_DEGRADED, "the probe ended with an error"
        return READY

    async def _ends(self, end: "asyncio.Task[Event]", rank: int) -> bool:
        """Whether the probe's request comes to its end."""
        engine, quiet = self._frontend.engine, self._frontend.probe_seconds
        deadline = asyncio.get_running_loop().time() + PROBE_SECONDS
        while not end.done() and asyncio.get_running_loop().time() < deadline:
            before = engine.loads[rank]
            await asyncio.wait((end,), timeout=quiet)
            # Every step leaves a new snapshot.
            if engine.loads[rank] is before:
                break
        return end.done()


async def _last_event(stream: Stream) -> Event:
    async for event in stream.events():
        if is_last(event):
            return event
    raise EngineException("a stream ended without its last event")
