"""Discovery messages, built from the deployment; the same input always gives the same message."""

from oe_wire import v1
from reference_engine.lora.limits import LoraLimits
from reference_engine.server.deployment import Deployment, Endpoint, RequestLimits

INFERENCE = "openengine.v1.Inference"
CONTROL = "openengine.v1.Control"
DISCOVERY = "openengine.v1.OpenEngineDiscovery"
ADAPTERS = "openengine.v1.OpenEngineAdapters"
HEALTH = "grpc.health.v1.Health"

SCHEMA_REVISION = 1
# The immutable commit of the schema registry that release v0.1.0 was published as: clients in
# use take a 32 or 40 digit hexadecimal commit and refuse a tag name.
SCHEMA_RELEASE = "768a93c7b44e40f28c692ad0b471a8f2"

# One loaded configuration for the life of the process; nothing changes the set of legal requests.
CONFIGURATION_EPOCH = 1
CAPABILITY_REVISION = 1

_TOP_N = v1.CANDIDATE_TOKEN_SELECTION_MODE_TOP_N
_TOKEN_IDS = v1.CANDIDATE_TOKEN_SELECTION_MODE_TOKEN_IDS
_ALL = v1.CANDIDATE_TOKEN_SELECTION_MODE_ALL


def server_info(deployment: Deployment) -> v1.ServerInfo:
    """Identity and capacity."""
    return v1.ServerInfo(
        engine_name="oe-engine",
        engine_version=deployment.version,
        engine_role=v1.ENGINE_ROLE_AGGREGATED,
        instance_id=deployment.instance_id,
        supported_models=[deployment.model.name],
        parallelism=v1.ParallelismInfo(
            tensor_parallel_size=1,
            pipeline_parallel_size=1,
            data_parallel_size=deployment.data_parallel_size,
            data_parallel_start_rank=0,
        ),
        schema_revision=SCHEMA_REVISION,
        minimum_client_revision=1,
        schema_release=SCHEMA_RELEASE,
        capacity=v1.DeploymentCapacity(
            kv_block_size=deployment.kv_block_size,
            total_kv_blocks=deployment.total_kv_blocks,
            max_running_requests=deployment.max_running,
            max_batched_tokens=deployment.max_batched_tokens,
            max_loras=deployment.lora.max_loaded if deployment.lora else None,
        ),
    )


def engine_info(deployment: Deployment) -> v1.EngineInfo:
    """ServerInfo, whose fields have the same numbers and types, and what core 1.0 adds."""
    info = v1.EngineInfo.FromString(server_info(deployment).SerializeToString())
    info.configuration_epoch = CONFIGURATION_EPOCH
    info.capability_revision = CAPABILITY_REVISION
    info.started_at_unix_nanos = deployment.started_at_unix_nanos
    info.service_endpoints.extend(_service_endpoints(deployment))
    return info


def _service_endpoints(deployment: Deployment) -> list[v1.ServiceEndpoint]:
    """One entry per service when they are spread over two listeners, else none."""
    data, control = deployment.data_endpoint, deployment.control_endpoint
    if data is None or control is None:
        return []
    placed = [(INFERENCE, data), (CONTROL, control), (DISCOVERY, control), (HEALTH, control)]
    if deployment.lora is not None:
        placed.append((ADAPTERS, control))
    return [_service_endpoint(service, endpoint) for service, endpoint in placed]


def _service_endpoint(service: str, endpoint: Endpoint) -> v1.ServiceEndpoint:
    return v1.ServiceEndpoint(
        service=service, host=endpoint.host, port=endpoint.port, tls=endpoint.tls
    )


def model_info(deployment: Deployment) -> v1.ModelInfo:
    """The served model and what a request may ask of it."""
    model = deployment.model
    return v1.ModelInfo(
        model_id=model.name,
        served_model_name=model.name,
        served_model_aliases=model.aliases,
        max_context_length=model.window,
        max_output_tokens=model.window,
        supports_text_input=True,
        supports_token_ids_input=True,
        generation=generation(deployment.limits),
        supports_lora=deployment.lora is not None,
        supports_multimodal=False,
    )


def generation(limits: RequestLimits) -> v1.GenerationCapabilities:
    """What generation offers; everything that is off is said to be off."""
    prompt_modes = [_TOP_N, _TOKEN_IDS, *([_ALL] if limits.prompt_candidates_all else [])]
    return v1.GenerationCapabilities(
        prompt_logprobs=v1.LogprobCapabilities(
            supported=True, candidate_selection_modes=prompt_modes, max_top_n=limits.max_top_n
        ),
        output_logprobs=v1.LogprobCapabilities(
            supported=True,
            candidate_selection_modes=[_TOP_N, _TOKEN_IDS, _ALL],
            max_top_n=limits.max_top_n,
        ),
        guided_decoding=_guided(limits),
        max_num_sequences=limits.max_num_sequences,
        supports_priority=True,
        supports_stop_in_output=True,
        supports_cache_salt=True,
        supports_prefix_cache_bypass=True,
    )


def _guided(limits: RequestLimits) -> v1.GuidedDecodingCapabilities:
    names = [f"GUIDED_DECODING_MODE_{kind.upper()}" for kind in limits.guided_kinds]
    return v1.GuidedDecodingCapabilities(
        supported=bool(names), modes=list(map(v1.GuidedDecodingMode.Value, names))
    )


def capabilities(deployment: Deployment, model: str) -> v1.Capabilities:
    """Profiles and limits; `model` is a served name, or empty for the whole engine."""
    found = v1.Capabilities(
        profiles=[
            v1.ServiceProfile(
                name="core",
                major=1,
                minor=0,
                models=[deployment.model.name],
                roles=[v1.ENGINE_ROLE_AGGREGATED],
                services=[INFERENCE, CONTROL, DISCOVERY, HEALTH],
            )
        ],
        instance_id=deployment.instance_id,
        model=deployment.model.name if model else "",
        configuration_epoch=CONFIGURATION_EPOCH,
        capability_revision=CAPABILITY_REVISION,
        change_notices=[v1.CAPABILITY_CHANGE_NOTICE_RECONNECT],
        core=_core(deployment.limits),
        generation=generation(deployment.limits),
    )
    if deployment.lora is not None:
        _add_adapters(found, deployment.model.name, deployment.lora)
    return found


def _add_adapters(found: v1.Capabilities, model: str, lora: LoraLimits) -> None:
    found.profiles.append(
        v1.ServiceProfile(
            name="adapters",
            major=1,
            minor=0,
            models=[model],
            roles=[v1.ENGINE_ROLE_AGGREGATED],
            services=[ADAPTERS, CONTROL],
        )
    )
    found.adapters.CopyFrom(
        v1.AdapterCapabilities(
            max_loaded=lora.max_loaded,
            max_resident=lora.max_resident,
            max_rank=lora.max_rank,
            models=[model],
            unload_while_in_use=True,
        )
    )


def _core(limits: RequestLimits) -> v1.CoreCapabilities:
    return v1.CoreCapabilities(
        max_request_id_bytes=limits.max_request_id_bytes,
        max_request_bytes=limits.max_request_bytes,
        max_stop_conditions=limits.max_stop_conditions,
        max_stop_text_bytes=limits.max_stop_text_bytes,
        abort_targets=[v1.ABORT_TARGET_KIND_REQUEST_ID, v1.ABORT_TARGET_KIND_ALL_REQUESTS],
        finished_request_retention_ms=limits.finished_retention_ms,
        response_stall_timeout_ms=limits.stall_timeout_ms,
        accepts_zero_max_tokens=False,
        deterministic_seed=True,
        health_probes=[v1.HEALTH_PROBE_KIND_PASSIVE, v1.HEALTH_PROBE_KIND_INFERENCE],
    )
