"""One worker process: listen, load a model behind the open port, serve, and stop cleanly."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
import uvicorn
from starlette.applications import Starlette

from reference_engine.engine.config import EngineConfig, default_num_blocks
from reference_engine.errors import ConfigError, EngineException
from reference_engine.model.config import ModelConfig
from reference_engine.model.load import load_model
from reference_engine.server.listen import parse_address
from reference_engine.worker.contract import Outcome, Worker
from reference_engine.worker.decision import Decider
from reference_engine.worker.forward import forwarding_app
from reference_engine.worker.process_options import WorkerOptions
from reference_engine.worker.queue import QueuedWorker
from reference_engine.worker.settings import TransportSettings
from reference_engine.worker.stage import StagedWorker
from reference_engine.worker.transport import worker_app

log = logging.getLogger(__name__)

STAGE_PATH = "/testing/worker"
# Options of one question are scored in one batch of at most so many.
_MAX_RUNNING = 16
_ORIGIN = re.compile(r"https?://[^/?#@\s]+")


def run(options: WorkerOptions) -> None:
    """Serve until SIGTERM or SIGINT. EngineException when an option is bad; a model that cannot
    be loaded is a failed worker, which says so on its health route.
    """
    settings = TransportSettings(
        work_path=options.work_path,
        health_path=options.health_path,
        body_limit=options.body_limit,
        budget_seconds=options.budget,
        budget_header=options.budget_header.lower(),
        response_limit=options.response_limit,
    )
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    asyncio.run(_serve(options, settings))


async def _serve(options: WorkerOptions, settings: TransportSettings) -> None:
    with _bound(options.listen) as listener:
        if options.forward is None:
            await _serve_worker(options, settings, listener)
        else:
            app = _forwarding(options.forward, options, settings)
            await _serve_app(app, listener, options, lambda: _announce(listener, options))


def _forwarding(origin: str, options: WorkerOptions, settings: TransportSettings) -> Starlette:
    if _ORIGIN.fullmatch(origin) is None:
        raise ConfigError(f"--forward is {origin!r}, expected http://host:port")
    stage = (("POST", STAGE_PATH), ("GET", STAGE_PATH)) if options.testing else ()
    return forwarding_app(origin, settings, stage)


async def _serve_worker(
    options: WorkerOptions, settings: TransportSettings, listener: socket.socket
) -> None:
    queue = QueuedWorker(options.queue)
    staged = StagedWorker(queue) if options.testing else None
    worker: Worker = queue if staged is None else staged
    app = worker_app(worker, settings, staged.routes(STAGE_PATH) if staged is not None else ())
    with ThreadPoolExecutor(1, thread_name_prefix="decision") as thread:
        loading = asyncio.create_task(_load(options, queue, staged, thread))
        loading.add_done_callback(lambda _: _announce(listener, options))
        try:
            await _serve_app(app, listener, options, lambda: None)
        finally:
            loading.cancel()
            if staged is not None:
                staged.release()
            await queue.close()


async def _load(
    options: WorkerOptions,
    queue: QueuedWorker,
    staged: StagedWorker | None,
    thread: ThreadPoolExecutor,
) -> None:
    """Load the model and open the queue, or say why not."""
    loop = asyncio.get_running_loop()
    try:
        decider = await loop.run_in_executor(thread, partial(_decider, options.model))
    except EngineException as error:
        log.exception("the model could not be loaded")
        queue.fail(str(error))
        return

    async def decide(body: bytes) -> Outcome:
        return await loop.run_in_executor(thread, decider.decide, body)

    queue.open(decide if staged is None else staged.staged(decide))
    log.info("ready with %s", options.model)


def _decider(model: str) -> Decider:
    loaded = load_model(model)
    return Decider(loaded, _engine_config(loaded.config))


def _engine_config(model: ModelConfig) -> EngineConfig:
    # Keys and values, 4 bytes each.
    token_bytes = 2 * 4 * model.num_layers * model.num_kv_heads * model.head_dim
    blocks = default_num_blocks(token_bytes, 16, model.max_position_embeddings, 2)
    return EngineConfig(blocks, max_running=_MAX_RUNNING)


async def _serve_app(
    app: Starlette,
    listener: socket.socket,
    options: WorkerOptions,
    started: Callable[[], None],
) -> None:
    """Serve until a signal; running requests get the grace before their connections are closed."""
    loop = asyncio.get_running_loop()
    # uvicorn raises the signals that ended it once more, for whoever else waits for them: without
    # these the process would die of them before it has cleaned up.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: None)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(options.grace)),
    )
    started()
    try:
        await uvicorn.Server(config).serve([listener])
    finally:
        if options.ready_file is not None:
            options.ready_file.unlink(missing_ok=True)


def _bound(text: str) -> socket.socket:
    address = parse_address("--listen", text)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    if address.path:
        raise ConfigError(f"--listen is {text!r}, expected host:port")
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        # From here on clients can connect; they are answered when the application runs.
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ConfigError(f"--listen {text}: {error.strerror}") from error
    return listener


def _announce(listener: socket.socket, options: WorkerOptions) -> None:
    """Write the ready file in one step, so that a reader never sees half of it."""
    host, port = listener.getsockname()[:2]
    origin = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    log.info("serving on %s", origin)
    path = options.ready_file
    if path is None:
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(json.dumps({"address": origin, "pid": os.getpid()}))
        part.replace(path)
    except OSError:
        log.exception("--ready-file %s cannot be written", path)
