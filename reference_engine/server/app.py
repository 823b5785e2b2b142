"""Puts engine and servicers together, starts the listeners, and takes everything down again."""

import asyncio
import logging
import secrets
import time
from dataclasses import dataclass
from importlib import metadata

import grpc

from oe_wire import services
from reference_engine.engine.block import BlockPool
from reference_engine.engine.config import EngineConfig
from reference_engine.engine.core import EngineCore
from reference_engine.engine.engine import Engine
from reference_engine.engine.runner import Runner
from reference_engine.engine.scheduler import Scheduler, SchedulerLimits
from reference_engine.errors import ConfigError
from reference_engine.model.kv_cache import KVCache
from reference_engine.model.load import LoadedModel
from reference_engine.server.control import ControlServicer
from reference_engine.server.deployment import Deployment, RequestLimits, ServedModel
from reference_engine.server.description import CONTROL, DISCOVERY, HEALTH, INFERENCE
from reference_engine.server.discovery import DiscoveryServicer
from reference_engine.server.frontend import Frontend
from reference_engine.server.health import NOT_SERVING, HealthServicer
from reference_engine.server.inference import InferenceServicer
from reference_engine.server.listen import (
    Address,
    TlsFiles,
    bind,
    credentials,
    endpoint,
)
from reference_engine.server.request_table import RequestTable

log = logging.getLogger(__name__)

# With all candidates of a prompt, 1,024 tokens x 4,096 entries are already 100 MB of message.
PROMPT_ALL_VOCABULARY = 4096
# Cancelling takes one step of the engine and the writing of one message per request.
CANCEL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How to serve. Without `control`, every service is on the one listener."""

    listen: Address
    control: Address | None = None
    advertise_host: str | None = None
    tls: TlsFiles | None = None
    aliases: tuple[str, ...] = ("default",)


def window_of(loaded: LoadedModel, config: EngineConfig) -> int:
    """Tokens of prompt and output together: what the model and the cache both hold."""
    return min(loaded.config.max_position_embeddings, config.cache_tokens)


def build_core(loaded: LoadedModel, config: EngineConfig) -> EngineCore:
    """An engine core with an empty cache."""
    pool = BlockPool(config.num_blocks, config.block_size)
    limits = SchedulerLimits(config.max_running, config.max_batched_tokens)
    cache = KVCache.allocate(loaded.config, config.num_blocks, config.block_size)
    runner = Runner(loaded.model, cache)
    return EngineCore(Scheduler(pool, limits), runner, loaded.tokenizer, window_of(loaded, config))


@dataclass(slots=True)
class Listener:
    """A bound gRPC server; it serves once started."""

    server: grpc.aio.Server
    address: Address
    port: int

    @property
    def reachable(self) -> str:
        """Its address for a client on this machine."""
        return self.address.reachable(self.port)


def _bound(option: str, address: Address, tls: TlsFiles | None, max_bytes: int) -> Listener:
    server = grpc.aio.server(
        options=[
            # Two engines on one port would share its calls at random.
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", max_bytes),
            # Answers grow with the vocabulary; the limit is the caller's.
            ("grpc.max_send_message_length", -1),
        ]
    )
    port = bind(server, option, address, credentials(tls) if tls else None)
    return Listener(server, address, port)


class App:
    """A serving engine. Made by `start`, taken down by `stop`."""

    def __init__(
        self, frontend: Frontend, health: HealthServicer, data: Listener, control: Listener
    ) -> None:
        self.frontend = frontend
        self._health = health
        self._data = data
        self._control = control

    @classmethod
    async def start(cls, loaded: LoadedModel, config: EngineConfig, options: ServeOptions) -> "App":
        """Bind, start the engine, serve. ConfigError when an address or a file is bad."""
        limits = _limits(loaded, config)
        data = _bound("--listen", options.listen, options.tls, limits.max_request_bytes)
        control = data
        if options.control is not None:
            if options.control.path or options.listen.path:
                raise ConfigError("--control-listen needs host:port for both listeners, not unix:")
            control = _bound(
                "--control-listen", options.control, options.tls, limits.max_request_bytes
            )
        frontend = Frontend(
            deployment=_deployment(loaded, config, options, data, control),
            engine=Engine(build_core(loaded, config), config.max_running + config.max_waiting),
            table=RequestTable(limits.finished_retention_ms),
            tokenizer=loaded.tokenizer,
        )
        app = cls(
            frontend, HealthServicer(("", INFERENCE, CONTROL, DISCOVERY, HEALTH)), data, control
        )
        await app._serve()
        return app

    @property
    def address(self) -> str:
        """Where Inference answers, for a client on this machine."""
        return self._data.reachable

    @property
    def control_address(self) -> str:
        """Where Control and Discovery answer."""
        return self._control.reachable

    async def _serve(self) -> None:
        servicers: list[tuple[Listener, str, object]] = [
            (self._data, INFERENCE, InferenceServicer(self.frontend)),
            (self._control, CONTROL, ControlServicer(self.frontend)),
            (self._control, DISCOVERY, DiscoveryServicer(self.frontend.deployment)),
            (self._data, HEALTH, self._health),
        ]
        if self._control is not self._data:
            servicers.append((self._control, HEALTH, self._health))
        for listener, service, servicer in servicers:
            listener.server.add_generic_rpc_handlers((services.handlers(service, servicer),))
        self.frontend.engine.start(on_end=self._data_plane_down)
        for server in self._distinct_servers():
            await server.start()

    def _distinct_servers(self) -> list[grpc.aio.Server]:
        return list(dict.fromkeys((self._data.server, self._control.server)))

    def _data_plane_down(self) -> None:
        self._health.set(INFERENCE, NOT_SERVING)
        self._health.set("", NOT_SERVING)

    async def stop(self, grace_seconds: float) -> None:
        """Refuse new work, let running work finish within the grace time, then cancel the rest."""
        self.frontend.draining = True
        self._data_plane_down()
        engine, table = self.frontend.engine, self.frontend.table
        if not await table.idle_within(grace_seconds):
            await asyncio.gather(*map(engine.abort, table.streams()))
            await table.idle_within(CANCEL_SECONDS)
        for service in (CONTROL, DISCOVERY, HEALTH):
            self._health.set(service, NOT_SERVING)
        await self._health.close()
        await asyncio.gather(*(server.stop(CANCEL_SECONDS) for server in self._distinct_servers()))
        await asyncio.to_thread(engine.stop)


def _version() -> str:
    """The installed version; a checkout that is only on the path has none."""
    try:
        return metadata.version("oe-conform")
    except metadata.PackageNotFoundError:
        return "0+source"


def _limits(loaded: LoadedModel, config: EngineConfig) -> RequestLimits:
    return RequestLimits(
        max_num_sequences=config.max_num_sequences,
        max_top_n=min(RequestLimits().max_top_n, loaded.config.vocab_size),
        prompt_candidates_all=loaded.config.vocab_size <= PROMPT_ALL_VOCABULARY,
    )


def _deployment(
    loaded: LoadedModel,
    config: EngineConfig,
    options: ServeOptions,
    data: Listener,
    control: Listener,
) -> Deployment:
    split = control is not data
    host, tls = options.advertise_host, options.tls is not None
    return Deployment(
        instance_id=secrets.token_hex(16),
        version=_version(),
        started_at_unix_nanos=time.time_ns(),
        model=ServedModel(
            name=loaded.name,
            aliases=tuple(alias for alias in options.aliases if alias != loaded.name),
            vocab_size=loaded.config.vocab_size,
            window=window_of(loaded, config),
        ),
        limits=_limits(loaded, config),
        kv_block_size=config.block_size,
        total_kv_blocks=config.num_blocks,
        max_running=config.max_running,
        max_batched_tokens=config.max_batched_tokens,
        data_endpoint=endpoint(data.address, data.port, host, tls=tls) if split else None,
        control_endpoint=endpoint(control.address, control.port, host, tls=tls) if split else None,
    )
