"""The Control service of the toy engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NoReturn

import grpc

from oe_wire import v1
from tests.legacy_engine.behaviour import INVALID, UNIMPLEMENTED, Behaviour, Key
from tests.legacy_engine.prefill import BACKEND
from tests.legacy_engine.validate import MODEL, SIZE, WINDOW

if TYPE_CHECKING:
    from tests.legacy_engine.server import State

Context = grpc.aio.ServicerContext[Any, Any]
BLOCKS, BLOCK_TOKENS, BLOCKS_EACH = 1024, 16, 4
DRAFT_NOT_READY, DRAFT_SUPPORTS_DRAIN = 5, 8
ABORTED = v1.AbortResponse(status=v1.ABORT_STATUS_ABORTED)
FINISHED = v1.AbortResponse(status=v1.ABORT_STATUS_ALREADY_FINISHED)


class Control:
    """Identity, models, load, health, abort; the rest as a server without it answers."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._behaviour = state.behaviour

    async def GetServerInfo(self, request: v1.GetServerInfoRequest, context: Context) -> Any:
        """Identity."""
        info = v1.ServerInfo(
            engine_name="toy",
            engine_version="0.1",
            engine_role=self._behaviour.role,
            instance_id=self._state.instance_id,
            supported_models=[MODEL],
            parallelism=v1.ParallelismInfo(
                tensor_parallel_size=1,
                pipeline_parallel_size=1,
                data_parallel_size=SIZE,
                data_parallel_start_rank=0,
            ),
            schema_revision=1,
            minimum_client_revision=1,
            schema_release=self._behaviour.schema_release,
            capacity=v1.DeploymentCapacity(kv_block_size=BLOCK_TOKENS, total_kv_blocks=BLOCKS),
        )
        if self._behaviour.role in {v1.ENGINE_ROLE_PREFILL, v1.ENGINE_ROLE_DECODE}:
            info.kv_connector.enabled = True
            info.kv_connector.transfer_backend = BACKEND
        if self._behaviour.draft:
            # A bool at the number of today's schema_version.
            info.kv_connector.MergeFromString(bytes((DRAFT_SUPPORTS_DRAIN << 3, 1)))
        return info

    async def GetEngineInfo(self, request: v1.GetServerInfoRequest, context: Context) -> Any:
        """Identity as the first drafts asked for it; they had neither capacity nor extra."""
        info = await self.GetServerInfo(request, context)
        info.ClearField("capacity")
        return info

    async def GetModelInfo(self, request: v1.GetModelInfoRequest, context: Context) -> Any:
        """The one model."""
        if not request.model and not self._behaviour.empty_model_known:
            await context.abort(INVALID, "model is required")
        if request.model not in {"", MODEL} and not self._behaviour.knows_any_model:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown model")
        return model_info(self._behaviour)

    async def GetLoad(self, request: v1.GetLoadRequest, context: Context) -> Any:
        """Requests that run now, and the blocks they hold."""
        running = len(self._state.active)
        load = v1.LoadInfo(
            instance_id=self._state.instance_id,
            timestamp_unix_nanos=time.time_ns(),
            running_requests=running,
            used_kv_blocks=min(BLOCKS, BLOCKS_EACH * running),
            total_kv_blocks=BLOCKS,
        )
        if request.include_per_rank and self._behaviour.per_rank_load:
            load.ranks.add(data_parallel_rank=0, running_requests=running)
        return load

    async def Health(self, request: v1.HealthRequest, context: Context) -> Any:
        """READY, with a probe when one is asked for."""
        not_ready = DRAFT_NOT_READY if self._behaviour.draft else v1.HEALTH_STATE_NOT_READY
        state = v1.HEALTH_STATE_READY if self._behaviour.ready else not_ready
        health = v1.HealthResponse(state=state)
        health.checks.add(name="grpc", state=v1.HEALTH_STATE_READY)
        health.checks.add(name="model", state=v1.HEALTH_STATE_READY)
        if not request.include_inference_probe:
            return health
        if self._behaviour.probe_code is not None:
            await context.abort(self._behaviour.probe_code, "no inference probe")
        if request.model not in {"", MODEL} and not self._behaviour.probe_any_model:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown model")
        health.checks.add(name="inference_probe", state=v1.HEALTH_STATE_READY)
        return health

    async def Abort(self, request: v1.AbortRequest, context: Context) -> Any:
        """End one request, or all of them."""
        match request.WhichOneof("target"):
            case "request_id":
                return await self._abort_request(request.request_id, context)
            case "all_requests":
                running = list(self._state.active.values())
                for active in running:
                    active.aborted = True
                return ABORTED if running else FINISHED
            case "kv_session":
                code = self._behaviour.session_abort_code
                if code is not None:
                    await context.abort(code, "no sessions to abort")
                return FINISHED
            case _:
                await context.abort(INVALID, "no target")
                raise AssertionError

    async def _abort_request(self, request_id: str, context: Context) -> v1.AbortResponse:
        active = self._state.active.get(request_id)
        if active is not None:
            active.aborted = True
            return ABORTED
        if request_id in self._state.finished or self._behaviour.forgets_unknown_aborts:
            return FINISHED
        if not request_id:
            await context.abort(INVALID, "request_id is empty")
        await context.abort(grpc.StatusCode.NOT_FOUND, "unknown request")
        raise AssertionError

    async def LoadLora(self, request: v1.LoadLoraRequest, context: Context) -> Any:
        """Refused: there are no adapters."""
        await self._no_adapters(context)

    async def UnloadLora(self, request: v1.UnloadLoraRequest, context: Context) -> Any:
        """Refused: there are no adapters."""
        await self._no_adapters(context)

    async def ListLoras(self, request: v1.ListLorasRequest, context: Context) -> Any:
        """Refused: there are no adapters."""
        await self._no_adapters(context)

    async def _no_adapters(self, context: Context) -> NoReturn:
        await context.abort(self._behaviour.lora_rpc_code, "adapters are disabled")

    async def GetKvEventSources(
        self, request: v1.GetKvEventSourcesRequest, context: Context
    ) -> Any:
        """No source."""
        if self._behaviour.kv_sources is Key.REFUSED:
            await context.abort(UNIMPLEMENTED, "no KV events")
        unknown = any(rank >= SIZE for rank in request.data_parallel_ranks)
        if unknown and self._behaviour.kv_sources is Key.CHECKED:
            await context.abort(INVALID, "unknown rank")
        return v1.GetKvEventSourcesResponse()


def model_info(behaviour: Behaviour) -> v1.ModelInfo:
    """What the engine says about its model."""
    info = v1.ModelInfo(
        model_id="test/toy",
        served_model_name=MODEL,
        max_context_length=WINDOW,
        max_output_tokens=behaviour.max_output_tokens,
        supports_text_input=behaviour.text_input,
        supports_token_ids_input=True,
        supports_lora=False,
        supports_multimodal=False,
    )
    generation = info.generation
    for offer in (generation.prompt_logprobs, generation.output_logprobs):
        offer.supported = True
        offer.max_top_n = behaviour.top_n
        offer.candidate_selection_modes.extend(behaviour.candidate_modes)
    if behaviour.guided_modes is not None:
        generation.guided_decoding.supported = True
        generation.guided_decoding.modes.extend(behaviour.guided_modes)
    if behaviour.max_num_sequences is not None:
        generation.max_num_sequences = behaviour.max_num_sequences
    generation.supports_stop_in_output = True
    generation.supports_cache_salt = behaviour.cache_salt
    generation.supports_prefix_cache_bypass = behaviour.bypass_code is None
    generation.supports_priority = behaviour.priority is Key.CHECKED
    return info
