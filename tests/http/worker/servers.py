"""The reference transport with a staged worker, on different ASGI servers, in a thread each."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
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
from reference_engine.worker.forward import forwarding_app
from reference_engine.worker.queue import QueuedWorker
from reference_engine.worker.settings import TransportSettings
from reference_engine.worker.stage import StagedWorker
from reference_engine.worker.transport import worker_app

STAGE = "/testing/worker"
SETTINGS = TransportSettings(body_limit=4096, budget_seconds=20.0, budget_header="x-budget-ms")
START_SECONDS = 20.0
BUDGET = Budget("server", 1, 120, 20_000, 0, 2)

# Serves an application on a port until the event is set.
Serve = Callable[[Starlette, int, asyncio.Event], Awaitable[None]]


async def decide(body: bytes) -> Outcome:
    """A decision that needs no model."""
    return Answer(b'{"answer":true,"bytes":%d}' % len(body))


async def on_uvicorn(app: Starlette, port: int, stop: asyncio.Event) -> None:
    config = uvicorn.Config(app, port=port, log_config=None, lifespan="on")
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
        interface=Interfaces.ASGI,
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

    async def main(port: int, ending: asyncio.Event) -> None:
        queue = QueuedWorker(3)
        staged = StagedWorker(queue)
        queue.open(staged.staged(decide))
        await serve(worker_app(staged, SETTINGS, staged.routes(STAGE)), port, ending)
        staged.release()
        await queue.close()

    with _running(main) as origin:
        yield options_of(origin)


@contextmanager
def forwarder_on(serve: Serve, backend: str) -> Iterator[str]:
    """A forwarder in front of a worker while the block runs; yields its origin."""

    async def main(port: int, ending: asyncio.Event) -> None:
        app = forwarding_app(backend, SETTINGS, (("POST", STAGE), ("GET", STAGE)))
        await serve(app, port, ending)

    with _running(main) as origin:
        yield origin


def options_of(origin: str, forwarder: str = "") -> HttpOptions:
    """How to judge a worker at this origin."""
    terms = WorkerTerms(
        body_limit=SETTINGS.body_limit,
        budget_seconds=SETTINGS.budget_seconds,
        budget_header=SETTINGS.budget_header,
        stage_path=STAGE,
        forwarder=forwarder,
    )
    target = HttpTarget(parse_origin(origin))
    return HttpOptions(target, worker_profile(terms), worker=terms, budget=BUDGET, seed=1)


@contextmanager
def _running(main: Callable[[int, asyncio.Event], Awaitable[None]]) -> Iterator[str]:
    """Runs `main` in a loop and a thread of its own, until its event is set; yields the origin."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    began, ended = threading.Event(), threading.Event()
    shared: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def whole() -> None:
        ending = asyncio.Event()
        shared.append((asyncio.get_running_loop(), ending))
        began.set()
        await main(port, ending)

    def run() -> None:
        try:
            asyncio.run(whole())
        finally:
            ended.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        _wait_open(port, ended)
        yield f"http://127.0.0.1:{port}"
    finally:
        began.wait(10)
        loop, ending = shared[0]
        loop.call_soon_threadsafe(ending.set)
        thread.join(20)
        if thread.is_alive():
            raise RuntimeError("the server did not end")


def _wait_open(port: int, ended: threading.Event) -> None:
    """Connect until it succeeds. granian says nothing when it listens, so what is waited for
    between two attempts is the server's end.
    """
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
        except OSError as refused:
            if ended.wait(0.02) or time.monotonic() > end:
                raise RuntimeError(f"no server at port {port}") from refused
        else:
            return
