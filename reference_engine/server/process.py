"""One serving process: load a model, serve it, and stop cleanly on a signal."""

import asyncio
import json
import logging
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from reference_engine.engine.config import EngineConfig, default_num_blocks
from reference_engine.errors import ConfigError
from reference_engine.lora.limits import LoraLimits
from reference_engine.model.config import ModelConfig
from reference_engine.model.device import resolve_device
from reference_engine.model.llama import Llama
from reference_engine.model.load import LoadedModel, load_model
from reference_engine.ranks.rank import Rank
from reference_engine.ranks.start import start_ranks
from reference_engine.ranks.worker import RankSetup
from reference_engine.server.app import App, ServeOptions
from reference_engine.server.deployment import AdminLimits, PausedAdmission
from reference_engine.server.listen import TlsFiles, parse_address
from reference_engine.server.process_options import ProcessOptions
from reference_engine.server.serving_loop import serve

log = logging.getLogger(__name__)

# A step of 512 tokens takes about 1 s with SmolLM2 on two cores, which decodes have to wait for.
MAX_BATCHED_TOKENS = 512


def run(options: ProcessOptions) -> None:
    """Serve until SIGTERM or SIGINT. EngineException when an option or the model is bad."""
    serve_options = _serve_options(options)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    load = partial(_load, options.model, options.device, options.dtype)
    loaded = load()
    config = engine_config(loaded.config, options)
    if options.data_parallel_size == 1:
        serve(_serve(loaded, config, serve_options, options))
        return
    loaded = _without_weights(loaded)
    setup = RankSetup(load, config, _threads_of_rank(options), logging.getLogger().level)
    ranks = start_ranks(options.data_parallel_size, setup)
    try:
        serve(_serve(loaded, config, serve_options, options, ranks))
    finally:
        for rank in ranks:
            rank.stop()


def _load(model: str, device: str, dtype: str) -> LoadedModel:
    return load_model(model, resolve_device(device), dtype)


def _without_weights(loaded: LoadedModel) -> LoadedModel:
    """The same for a process that computes nothing, so that the weights can go."""
    with torch.device("meta"):
        return replace(loaded, model=Llama(loaded.config))


def _threads_of_rank(options: ProcessOptions) -> int:
    """Threads of each rank's model: more of them than cores are slower than one."""
    return options.threads or max(1, (os.cpu_count() or 1) // options.data_parallel_size)


def engine_config(model: ModelConfig, options: ProcessOptions) -> EngineConfig:
    """Sizes of the engine; the cache is sized by the model unless an option says otherwise."""
    # Keys and values, 4 bytes each.
    token_bytes = 2 * 4 * model.num_layers * model.num_kv_heads * model.head_dim
    blocks = options.kv_blocks or default_num_blocks(
        token_bytes, options.block_size, model.max_position_embeddings, options.max_running
    )
    return EngineConfig(
        num_blocks=blocks,
        block_size=options.block_size,
        max_running=options.max_running,
        max_waiting=options.max_waiting,
        max_batched_tokens=max(MAX_BATCHED_TOKENS, options.max_running),
        lora=_lora_limits(options),
    )


def _lora_limits(options: ProcessOptions) -> LoraLimits | None:
    """None when LoRA is switched off."""
    most, resident = options.max_loras, options.max_resident_loras
    if not most:
        return None
    return LoraLimits(
        max_loaded=most,
        max_resident=min(most, resident) if resident else most,
        max_rank=options.max_lora_rank,
        root=options.lora_root,
    )


def _serve_options(options: ProcessOptions) -> ServeOptions:
    control = options.control_listen
    return ServeOptions(
        listen=parse_address("--listen", options.listen),
        control=parse_address("--control-listen", control) if control is not None else None,
        advertise_host=options.advertise_host,
        tls=_tls_files(options),
        aliases=options.aliases,
        stall_timeout_ms=options.stall_timeout_ms,
        probe_timeout_ms=options.probe_timeout_ms,
        max_watch_streams=options.max_watch_streams,
        adapters=tuple(map(_adapter, options.loras)),
        admin=_admin_limits(options),
        testing=options.testing,
    )


def _admin_limits(options: ProcessOptions) -> AdminLimits | None:
    """None when administration is switched off."""
    return AdminLimits(PausedAdmission(options.paused_admission)) if options.admin else None


def _adapter(option: str) -> tuple[str, str]:
    """Name and absolute directory of NAME=PATH."""
    name, equals, path = option.partition("=")
    if not (name and equals and path):
        raise ConfigError(f"--lora is {option!r}, expected NAME=PATH")
    return name, str(Path(path).absolute())


def _tls_files(options: ProcessOptions) -> TlsFiles | None:
    certificate, key = options.tls_cert, options.tls_key
    if certificate is None and key is None and options.tls_client_ca is None:
        return None
    if certificate is None or key is None:
        raise ConfigError("--tls-cert or --tls-key is missing, expected both for TLS")
    return TlsFiles(certificate, key, options.tls_client_ca)


async def _serve(
    loaded: LoadedModel,
    config: EngineConfig,
    serve_options: ServeOptions,
    options: ProcessOptions,
    ranks: tuple[Rank, ...] = (),
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    app = await App.start(loaded, config, serve_options, ranks)
    log.info("serving %s on %s", loaded.name, app.address)
    try:
        if options.ready_file is not None:
            _announce(app, options.ready_file)
        await stop.wait()
        log.info("stopping; running requests get %.0f s", options.grace)
    finally:
        await app.stop(options.grace)
        if options.ready_file is not None:
            _withdraw(options.ready_file)


def _announce(app: App, path: Path) -> None:
    """Write the ready file in one step, so that a reader never sees half of it."""
    content = {
        "address": app.address,
        "control_address": app.control_address,
        "pid": os.getpid(),
    }
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(json.dumps(content))
        part.replace(path)
    except OSError as error:
        raise ConfigError(
            f"--ready-file {path}: {error.strerror}, expected a path that can be written"
        ) from error


def _withdraw(path: Path) -> None:
    path.unlink(missing_ok=True)
