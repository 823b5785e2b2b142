"""Finds out whether an engine whose steps all failed computes again."""

import asyncio

from reference_engine.server.frontend import Frontend
from reference_engine.server.inference_probe import InferenceProbe

# Often enough for an outage to be short, seldom enough for the log to stay readable.
RECOVERY_SECONDS = 5.0


class Recovery:
    """While the engine fails nothing new is taken, so only probes can show that it is well."""

    def __init__(self, frontend: Frontend, seconds: float = RECOVERY_SECONDS) -> None:
        self._frontend = frontend
        self._seconds = seconds
        self._probe = InferenceProbe(frontend)
        self._task: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Probe from time to time while the engine fails. Call it when its health has changed."""
        engine = self._frontend.engine
        running = self._task is not None and not self._task.done()
        if engine.alive and not engine.healthy and not running:
            self._task = asyncio.create_task(self._run())

    def close(self) -> None:
        """End the probes."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        engine = self._frontend.engine
        while engine.alive and not engine.healthy:
            await asyncio.sleep(self._seconds)
            await self._probe.run()
