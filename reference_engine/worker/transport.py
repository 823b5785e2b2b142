"""HTTP in front of a worker: two routes, one budget, one body limit, one status for each outcome.

503 is for a worker that cannot take work; a budget that is used up is 504, whatever used it.
"""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reference_engine.worker.arrival import read_body
from reference_engine.worker.bounded import bounded
from reference_engine.worker.contract import Readiness, Worker
from reference_engine.worker.exchange import awaited
from reference_engine.worker.reply import MODEL_UNAVAILABLE, error, health, reply
from reference_engine.worker.settings import TransportSettings


def worker_app(
    worker: Worker, settings: TransportSettings, routes: tuple[Route, ...] = ()
) -> Starlette:
    """The ASGI application. routes: more of them, such as those of a test run."""
    transport = _Transport(worker, settings)
    return Starlette(
        routes=[
            Route(settings.work_path, transport.work, methods=["POST"]),
            Route(settings.health_path, transport.health, methods=["GET"]),
            *routes,
        ]
    )


class _Transport:
    """The handlers of the two routes."""

    def __init__(self, worker: Worker, settings: TransportSettings) -> None:
        self._worker = worker
        self._settings = settings

    async def health(self, _: Request) -> Response:
        return health(self._worker)

    async def work(self, request: Request) -> Response:
        lost = error(503, MODEL_UNAVAILABLE)
        return await bounded(request, self._settings, self._work, lost)

    async def _work(self, request: Request, deadline: float) -> Response:
        if self._worker.readiness() is not Readiness.READY:
            return error(503, MODEL_UNAVAILABLE)
        body = await read_body(request, self._settings.body_limit, deadline)
        if asyncio.get_running_loop().time() >= deadline:
            raise TimeoutError
        if self._worker.readiness() is not Readiness.READY:
            return error(503, MODEL_UNAVAILABLE)
        return reply(await awaited(request, self._worker.submit(body, deadline), deadline))
