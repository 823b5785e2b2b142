"""Discovery messages, built from the deployment; the same input always gives the same message."""

from oe_wire import v1
from reference_engine.lora.limits import LoraLimits
from reference_engine.server.deployment import (
    AdminLimits,
    Deployment,
    Endpoint,
    PausedAdmission,
    RequestLimits,
)
from reference_engine.server.load_limits import load_capabilities

INFERENCE = "openengine.v1.Inference"
CONTROL = "openengine.v1.Control"
DISCOVERY = "openengine.v1.OpenEngineDiscovery"
ADAPTERS = "openengine.v1.OpenEngineAdapters"
ADMIN = "openengine.v1.OpenEngineAdmin"
TESTING = "openengine.v1.OpenEngineTesting"
OBSERVABILITY = "openengine.v1.OpenEngineObservability"
HEALTH = "grpc.health.v1.Health"

SCHEMA_REVISION = 1
# The immutable commit of the schema registry that release v0.1.0 was published as: clients in
# use take a 32 or 40 digit hexadecimal commit and refuse a tag name.
SCHEMA_RELEASE = "768a93c7b44e40f28c692ad0b471a8f2"

# What OpenEngineAdmin takes: advertised from here and enforced from here.
PAUSE_MODES = (v1.PAUSE_MODE_ABORT, v1.PAUSE_MODE_WAIT, v1.PAUSE_MODE_KEEP)
CACHE_KINDS = (v1.CACHE_KIND_PREFIX,)

_ADMISSION = {
    PausedAdmission.REJECT: v1.PAUSED_ADMISSION_REJECT,
    PausedAdmission.HOLD: v1.PAUSED_ADMISSION_HOLD,
}
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
    info.configuration_epoch = deployment.configuration_epoch
    info.capability_revision = deployment.capability_revision
    info.started_at_unix_nanos = deployment.started_at_unix_nanos
    info.service_endpoints.extend(_service_endpoints(deployment))
    return info


def _service_endpoints(deployment: Deployment) -> list[v1.ServiceEndpoint]:
    """One entry per service when they are spread over two listeners, else none."""
    data, control = deployment.data_endpoint, deployment.control_endpoint
    if data is None or control is None:
        return []
    placed = [(INFERENCE, data), *((name, control) for name in control_services(deployment))]
    return [_service_endpoint(service, endpoint) for service, endpoint in placed]


def control_services(deployment: Deployment) -> tuple[str, ...]:
    """What the listener of the control plane serves, and health tells of."""
    return (
        CONTROL,
        DISCOVERY,
        HEALTH,
        OBSERVABILITY,
        *([ADAPTERS] if deployment.lora else []),
        *([ADMIN] if deployment.admin else []),
        *([TESTING] if deployment.testing else []),
    )


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
        supports_priority=limits.supports_priority,
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
    name = deployment.model.name
    found = v1.Capabilities(
        profiles=[
            _profile("core", name, INFERENCE, CONTROL, DISCOVERY, HEALTH),
            _profile("scheduling_load", name, OBSERVABILITY, CONTROL),
        ],
        instance_id=deployment.instance_id,
        model=name if model else "",
        configuration_epoch=deployment.configuration_epoch,
        capability_revision=deployment.capability_revision,
        change_notices=[v1.CAPABILITY_CHANGE_NOTICE_LOAD_STREAM],
        core=_core(deployment.limits),
        generation=generation(deployment.limits),
        observability=v1.ObservabilityCapabilities(load=load_capabilities(deployment.load)),
    )
    if deployment.lora is not None:
        _add_adapters(found, name, deployment.lora)
    if deployment.admin is not None:
        found.profiles.append(_profile("admin", name, ADMIN))
        found.admin.CopyFrom(_admin(deployment.admin))
    if deployment.testing:
        found.profiles.append(_profile("testing", name, TESTING))
    return found


def _profile(profile: str, model: str, *services: str) -> v1.ServiceProfile:
    return v1.ServiceProfile(
        name=profile,
        major=1,
        minor=0,
        models=[model],
        roles=[v1.ENGINE_ROLE_AGGREGATED],
        services=services,
    )


def _admin(limits: AdminLimits) -> v1.AdminCapabilities:
    return v1.AdminCapabilities(
        operations=[v1.ADMIN_OPERATION_PAUSE, v1.ADMIN_OPERATION_RESET_CACHE],
        pause_modes=PAUSE_MODES,
        paused_admission=_ADMISSION[limits.paused_admission],
        cache_kinds=CACHE_KINDS,
    )


def _add_adapters(found: v1.Capabilities, model: str, lora: LoraLimits) -> None:
    found.profiles.append(_profile("adapters", model, ADAPTERS, CONTROL))
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
