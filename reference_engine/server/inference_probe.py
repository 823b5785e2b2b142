"""One token through every rank of the engine, to see that it computes."""

import asyncio

from oe_wire import v1
from reference_engine.engine.output import RequestFailed, is_last
from reference_engine.engine.request import Request, Sampling, Stopping
from reference_engine.server.frontend import Frontend

# Below the 60 s that a caller may expect an answer in, even from an engine that is stuck.
PROBE_SECONDS = 30.0

Result = tuple[int, str]
READY: Result = (v1.HEALTH_STATE_READY, "")


class InferenceProbe:
    """Callers that ask at the same time share one run."""

    def __init__(self, frontend: Frontend, seconds: float = PROBE_SECONDS) -> None:
        self._frontend = frontend
        self._seconds = seconds
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
            prompt=(0,), sampling=Sampling(seed=0, temperature=0.0), stopping=Stopping(max_tokens=1)
        )
        stream = engine.submit(request, rank)
        try:
            async with asyncio.timeout(self._seconds):
                async for event in stream.events():
                    if isinstance(event, RequestFailed):
                        return v1.HEALTH_STATE_DEGRADED, "the probe ended with an error"
                    if is_last(event):
                        break
        except TimeoutError:
            engine.cancel(stream)
            return v1.HEALTH_STATE_DEGRADED, f"no token within {self._seconds:.0f} s"
        return READY
