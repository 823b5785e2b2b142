"""Puts engine and servicers together, starts the listeners, and takes everything down again."""

import asyncio
import logging
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata

import grpc

from oe_wire import services
from reference_engine.engine.build import build_core, window_of
from reference_engine.engine.config import EngineConfig
from reference_engine.engine.engine import Engine
from reference_engine.errors import ConfigError
from reference_engine.guided.guides import Guides, guide_kinds
from reference_engine.lora.start import adapter_registry, load_at_start
from reference_engine.model.load import LoadedModel
from reference_engine.ranks.group import RankGroup
from reference_engine.ranks.rank import Rank
from reference_engine.server.adapters import AdapterRpcs
from reference_engine.server.admin import AdminServicer
from reference_engine.server.administration import Administration
from reference_engine.server.control import ControlServicer
from reference_engine.server.deployment import (
    AdminLimits,
    Deployment,
    PausedAdmission,
    RequestLimits,
    ServedModel,
)
from reference_engine.server.description import (
    ADAPTERS,
    ADMIN,
    CONTROL,
    DISCOVERY,
    HEALTH,
    INFERENCE,
    OBSERVABILITY,
    TESTING,
    control_services,
)
from reference_engine.server.discovery import DiscoveryServicer
from reference_engine.server.frontend import Frontend
from reference_engine.server.guide import GuideCompiler
from reference_engine.server.health import NOT_SERVING, SERVING, HealthServicer
from reference_engine.server.inference import InferenceServicer
from reference_engine.server.listen import (
    Address,
    TlsFiles,
    bind,
    credentials,
    endpoint,
)
from reference_engine.server.load_limits import LoadLimits
from reference_engine.server.observability import ObservabilityServicer
from reference_engine.server.pause import Pause, Phase
from reference_engine.server.recovery import Recovery
from reference_engine.server.request_table import RequestTable
from reference_engine.server.revisions import Revisions
from reference_engine.server.testing import TestingServicer
from reference_engine.server.watch_load import LoadWatch

log = logging.getLogger(__name__)

# With all candidates of a prompt, 1,024 tokens x 4,096 entries are already 100 MB of message.
PROMPT_ALL_VOCABULARY = 4096
# Cancelling takes one step of the engine and the writing of one message per request.
CANCEL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How to serve. Without `control`, every service is on the one listener.

    adapters: name and absolute directory of those to load at start, with the ids 1, 2 and so on.
    admin: None for no OpenEngineAdmin. testing: whether to serve OpenEngineTesting.
    """

    listen: Address
    control: Address | None = None
    advertise_host: str | None = None
    tls: TlsFiles | None = None
    aliases: tuple[str, ...] = ("default",)
    stall_timeout_ms: int = 30_000
    probe_timeout_ms: int = 10_000
    max_watch_streams: int = 64
    adapters: tuple[tuple[str, str], ...] = ()
    admin: AdminLimits | None = AdminLimits()  # noqa: RUF009 - frozen
    testing: bool = False


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
        self._recovery = Recovery(frontend)
        self._administration = Administration(frontend, self._health_changed)
        self._watch = LoadWatch(frontend.revisions, frontend.engine, frontend.faults)
        self._data = data
        self._control = control

    @classmethod
    async def start(
        cls,
        loaded: LoadedModel,
        config: EngineConfig,
        options: ServeOptions,
        ranks: tuple[Rank, ...] = (),
    ) -> "App":
        """Bind, start the engine, serve. ConfigError when an address or a file is bad.

        Without ranks, which are started already, the engine runs in a thread of this process.
        """
        limits = _limits(loaded, config, options)
        data = _bound("--listen", options.listen, options.tls, limits.max_request_bytes)
        control = data
        if options.control is not None:
            if options.control.path or options.listen.path:
                raise ConfigError("--control-listen needs host:port for both listeners, not unix:")
            control = _bound(
                "--control-listen", options.control, options.tls, limits.max_request_bytes
            )
        guides = Guides(loaded.tokenizer)
        engines: tuple[Engine | Rank, ...] = ranks or (
            Engine(build_core(loaded, config, guides), config.max_running + config.max_waiting),
        )
        group = RankGroup(engines)
        frontend = Frontend(
            revisions=Revisions(_deployment(loaded, config, options, data, control, len(engines))),
            engine=group,
            table=RequestTable(limits.finished_retention_ms),
            tokenizer=loaded.tokenizer,
            guides=GuideCompiler(guides),
            adapters=adapter_registry(loaded.config, config.lora, group, config.max_waiting),
            probe_seconds=options.probe_timeout_ms / 1000,
            pause=Pause(holds_new=_holds_new(options.admin)),
        )
        await load_at_start(frontend.adapters, options.adapters)
        names = ("", INFERENCE, *control_services(frontend.deployment))
        app = cls(frontend, HealthServicer(names), data, control)
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
            (self._control, CONTROL, ControlServicer(self.frontend, self._watch)),
            (self._control, DISCOVERY, DiscoveryServicer(self.frontend.revisions)),
            (self._control, OBSERVABILITY, ObservabilityServicer(self._watch)),
            (self._data, HEALTH, self._health),
        ]
        if self.frontend.adapters is not None:
            servicers.append((self._control, ADAPTERS, AdapterRpcs(self.frontend.adapters)))
        if self.frontend.deployment.admin is not None:
            servicers.append((self._control, ADMIN, AdminServicer(self._administration)))
        if self.frontend.deployment.testing:
            servicers.append((self._control, TESTING, TestingServicer(self.frontend)))
        if self._control is not self._data:
            servicers.append((self._control, HEALTH, self._health))
        for listener, service, servicer in servicers:
            listener.server.add_generic_rpc_handlers((services.handlers(service, servicer),))
        self.frontend.engine.start(on_change=self._health_changed)
        for server in self._distinct_servers():
            await server.start()

    def _distinct_servers(self) -> list[grpc.aio.Server]:
        return list(dict.fromkeys((self._data.server, self._control.server)))

    def _health_changed(self) -> None:
        status = SERVING if self.frontend.serving else NOT_SERVING
        self._health.set(INFERENCE, status)
        self._health.set("", status)
        if not self.frontend.draining:
            self._recovery.watch()

    async def stop(self, grace_seconds: float) -> None:
        """Refuse new work, let running work finish within the grace time, then cancel the rest.

        What a pause keeps from running is cancelled at once.
        """
        self.frontend.draining = True
        self._recovery.close()
        self._health_changed()
        engine, table = self.frontend.engine, self.frontend.table
        engine.unwedge()
        if self.frontend.pause.phase is Phase.PAUSED:
            grace_seconds = 0
        if not await table.idle_within(grace_seconds):
            with suppress(TimeoutError):
                async with asyncio.timeout(CANCEL_SECONDS):
                    await asyncio.gather(*map(engine.abort, table.streams()))
            await table.idle_within(CANCEL_SECONDS)
        for service in control_services(self.frontend.deployment):
            self._health.set(service, NOT_SERVING)
        self._watch.close()
        await self._health.close()
        await asyncio.gather(*(server.stop(CANCEL_SECONDS) for server in self._distinct_servers()))
        await asyncio.to_thread(engine.stop)
        self.frontend.guides.close()


def _holds_new(admin: AdminLimits | None) -> bool:
    return admin is not None and admin.paused_admission is PausedAdmission.HOLD


def _version() -> str:
    """The installed version; a checkout that is only on the path has none."""
    try:
        return metadata.version("oe-conform")
    except metadata.PackageNotFoundError:
        return "0+source"


def _limits(loaded: LoadedModel, config: EngineConfig, options: ServeOptions) -> RequestLimits:
    return RequestLimits(
        max_num_sequences=config.max_num_sequences,
        max_top_n=min(RequestLimits().max_top_n, loaded.config.vocab_size),
        prompt_candidates_all=loaded.config.vocab_size <= PROMPT_ALL_VOCABULARY,
        stall_timeout_ms=options.stall_timeout_ms,
        guided_kinds=tuple(kind.value for kind in guide_kinds(loaded.tokenizer)),
    )


def _deployment(
    loaded: LoadedModel,
    config: EngineConfig,
    options: ServeOptions,
    data: Listener,
    control: Listener,
    num_ranks: int,
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
        limits=_limits(loaded, config, options),
        kv_block_size=config.block_size,
        total_kv_blocks=num_ranks * config.num_blocks,
        max_running=num_ranks * config.max_running,
        max_batched_tokens=config.max_batched_tokens,
        data_parallel_size=num_ranks,
        load=LoadLimits.of_streams(options.max_watch_streams),
        lora=config.lora,
        admin=options.admin,
        testing=options.testing,
        data_endpoint=endpoint(data.address, data.port, host, tls=tls) if split else None,
        control_endpoint=endpoint(control.address, control.port, host, tls=tls) if split else None,
    )
