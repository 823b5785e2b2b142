"""The reference transport with a staged worker, on different ASGI servers, in a thread each."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import uvicorn
from granian.constants import Interfaces
from granian.server.embed import Server as Granian
from starlette.applications import Starlette

from conformance.http.origin import parse_origin
from conformance.http.target import HttpTarget
from conformance.runner.budget import Budget
from conformance.runner.http_session import HttpOptions
from conformance.runtimes.worker import WorkerTerms, worker_profile
from reference_engine.worker.contract import Answer, Outcome
from reference_engine.worker.queue import QueuedWorker
from reference_engine.worker.settings import TransportSettings
from reference_engine.worker.stage import StagedWorker
from reference_engine.worker.transport import worker_app

STAGE = "/testing/worker"
SETTINGS = TransportSettings(body_limit=4096, budget_seconds=20.0, budget_header="x-budget-ms")
BUDGET = Budget("server", 1, 120, 20_000, 0, 2)

# Serves an application on a port until the event is set.
Serve = Callable[[Starlette, int, asyncio.Event], Awaitable[None]]


async def decide(body: bytes) -> Outcome:
    """A decision that needs no model."""
    return Answer(b'{"answer":true,"bytes":%d}' % len(body))


async def on_uvicorn(app: Starlette, port: int, stop: asyncio.Event) -> None:
    config = uvicorn.Config(app, port=port, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    # Its own signal handlers are for a main thread.
    serving = asyncio.create_task(server._serve())
    await stop.wait()
    server.should_exit = True
    await serving


async def on_granian(app: Starlette, port: int, stop: asyncio.Event) -> None:
    server = Granian(
        app,
        address="127.0.0.1",
        port=port,
        interface=Interfaces.ASGINL,
        log_enabled=False,
        websockets=False,
    )
    serving = asyncio.create_task(server.serve())
    await stop.wait()
    server.stop()
    await serving


@contextmanager
def worker_on(serve: Serve) -> Iterator[HttpOptions]:
    """A staged worker behind the server while the block runs; yields how to judge it."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    running = _Served(serve, port)
    try:
        terms = WorkerTerms(
            body_limit=SETTINGS.body_limit,
            budget_seconds=SETTINGS.budget_seconds,
            budget_header=SETTINGS.budget_header,
            stage_path=STAGE,
        )
        yield HttpOptions(
            HttpTarget(parse_origin(f"http://127.0.0.1:{port}")),
            worker_profile(terms),
            worker=terms,
            budget=BUDGET,
            seed=1,
        )
    finally:
        running.end()


class _Served:
    """The thread and the loop of one server."""

    def __init__(self, serve: Serve, port: int) -> None:
        self._serve = serve
        self._port = port
        self._began = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._thread.start()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        queue = QueuedWorker(3)
        staged = StagedWorker(queue)
        queue.open(staged.staged(decide))
        self._began.set()
        app = worker_app(staged, SETTINGS, staged.routes(STAGE))
        await self._serve(app, self._port, self._ending)
        staged.release()
        await queue.close()

    def end(self) -> None:
        self._began.wait(10)
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(20)
        if self._thread.is_alive():
            raise RuntimeError("the server did not end")
