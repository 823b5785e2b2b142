"""Generated from proto/ by `make protos`; edit the protos instead."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
)
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

from oe_wire.struct import Struct

class LoraAdapter(Message):
    lora_id: int
    lora_name: str
    source_path: str
    def __init__(
        self,
        *,
        lora_id: int | None = ...,
        lora_name: str | None = ...,
        source_path: str | None = ...,
    ) -> None: ...

class LoadLoraRequest(Message):
    @property
    def adapter(self) -> LoraAdapter: ...
    def __init__(
        self,
        *,
        adapter: LoraAdapter | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["adapter"]) -> bool: ...

class LoadLoraResponse(Message):
    @property
    def adapter(self) -> LoraAdapter: ...
    already_loaded: bool
    def __init__(
        self,
        *,
        adapter: LoraAdapter | None = ...,
        already_loaded: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["adapter"]) -> bool: ...

class UnloadLoraRequest(Message):
    lora_name: str
    def __init__(
        self,
        *,
        lora_name: str | None = ...,
    ) -> None: ...

class UnloadLoraResponse(Message):
    @property
    def adapter(self) -> LoraAdapter: ...
    def __init__(
        self,
        *,
        adapter: LoraAdapter | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["adapter"]) -> bool: ...

class ListLorasRequest(Message):
    def __init__(self) -> None: ...

class ListLorasResponse(Message):
    @property
    def adapters(self) -> RepeatedCompositeFieldContainer[LoraAdapter]: ...
    def __init__(
        self,
        *,
        adapters: Iterable[LoraAdapter] | None = ...,
    ) -> None: ...

ErrorCode: EnumTypeWrapper
ERROR_CODE_UNSPECIFIED: Final = 0
ERROR_CODE_INVALID_ARGUMENT: Final = 1
ERROR_CODE_UNSUPPORTED_FEATURE: Final = 2
ERROR_CODE_ROLE_MISMATCH: Final = 3
ERROR_CODE_MODEL_NOT_FOUND: Final = 4
ERROR_CODE_OVERLOADED: Final = 5
ERROR_CODE_REQUEST_NOT_FOUND: Final = 6
ERROR_CODE_DUPLICATE_REQUEST: Final = 7
ERROR_CODE_KV_SESSION_NOT_FOUND: Final = 8
ERROR_CODE_KV_TRANSFER_FAILED: Final = 9
ERROR_CODE_CANCELLED: Final = 10
ERROR_CODE_INTERNAL: Final = 11

class EngineError(Message):
    code: int
    message: str
    retryable: bool
    def __init__(
        self,
        *,
        code: int | None = ...,
        message: str | None = ...,
        retryable: bool | None = ...,
    ) -> None: ...

SchedulerState: EnumTypeWrapper
SCHEDULER_STATE_UNSPECIFIED: Final = 0
SCHEDULER_STATE_RUNNING: Final = 1
SCHEDULER_STATE_PAUSING: Final = 2
SCHEDULER_STATE_PAUSED: Final = 3
SCHEDULER_STATE_DRAINING: Final = 4
SCHEDULER_STATE_SLEEPING: Final = 5

PauseMode: EnumTypeWrapper
PAUSE_MODE_UNSPECIFIED: Final = 0
PAUSE_MODE_ABORT: Final = 1
PAUSE_MODE_WAIT: Final = 2
PAUSE_MODE_KEEP: Final = 3

CacheKind: EnumTypeWrapper
CACHE_KIND_UNSPECIFIED: Final = 0
CACHE_KIND_PREFIX: Final = 1
CACHE_KIND_MULTIMODAL: Final = 2
CACHE_KIND_ENCODER: Final = 3
CACHE_KIND_CONNECTOR: Final = 4

DrainState: EnumTypeWrapper
DRAIN_STATE_UNSPECIFIED: Final = 0
DRAIN_STATE_STARTED: Final = 1
DRAIN_STATE_IN_PROGRESS: Final = 2
DRAIN_STATE_COMPLETE: Final = 3

AdminOperation: EnumTypeWrapper
ADMIN_OPERATION_UNSPECIFIED: Final = 0
ADMIN_OPERATION_PAUSE: Final = 1
ADMIN_OPERATION_RESET_CACHE: Final = 2
ADMIN_OPERATION_DRAIN: Final = 3
ADMIN_OPERATION_SLEEP: Final = 4
ADMIN_OPERATION_WEIGHT_UPDATE: Final = 5
ADMIN_OPERATION_PROFILE: Final = 6

PausedAdmission: EnumTypeWrapper
PAUSED_ADMISSION_UNSPECIFIED: Final = 0
PAUSED_ADMISSION_REJECT: Final = 1
PAUSED_ADMISSION_HOLD: Final = 2

class GetAdminStateRequest(Message):
    def __init__(self) -> None: ...

class AdminState(Message):
    instance_id: str
    scheduler: int
    pause_mode: int
    @property
    def sleeping_tags(self) -> RepeatedScalarFieldContainer[str]: ...
    weight_version: str
    open_weight_update_id: str
    profiling: bool
    in_flight_requests: int
    held_requests: int
    admin_revision: int
    def __init__(
        self,
        *,
        instance_id: str | None = ...,
        scheduler: int | None = ...,
        pause_mode: int | None = ...,
        sleeping_tags: Iterable[str] | None = ...,
        weight_version: str | None = ...,
        open_weight_update_id: str | None = ...,
        profiling: bool | None = ...,
        in_flight_requests: int | None = ...,
        held_requests: int | None = ...,
        admin_revision: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["in_flight_requests", "held_requests"]) -> bool: ...

class PauseGenerationRequest(Message):
    mode: int
    reset_prefix_cache: bool
    timeout_ms: int
    def __init__(
        self,
        *,
        mode: int | None = ...,
        reset_prefix_cache: bool | None = ...,
        timeout_ms: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["reset_prefix_cache", "timeout_ms"]) -> bool: ...

class ResumeGenerationRequest(Message):
    def __init__(self) -> None: ...

class ResetCacheRequest(Message):
    @property
    def kinds(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        kinds: Iterable[int] | None = ...,
    ) -> None: ...

class ResetCacheResponse(Message):
    @property
    def reset(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        reset: Iterable[int] | None = ...,
    ) -> None: ...

class DrainRequest(Message):
    stop_accepting_new_requests: bool
    deadline_ms: int
    abort_after_deadline: bool
    def __init__(
        self,
        *,
        stop_accepting_new_requests: bool | None = ...,
        deadline_ms: int | None = ...,
        abort_after_deadline: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["deadline_ms"]) -> bool: ...

class DrainResponse(Message):
    state: int
    @property
    def error(self) -> EngineError: ...
    in_flight_requests: int
    open_kv_sessions: int
    message: str
    def __init__(
        self,
        *,
        state: int | None = ...,
        error: EngineError | None = ...,
        in_flight_requests: int | None = ...,
        open_kv_sessions: int | None = ...,
        message: str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["state", "error", "in_flight_requests", "open_kv_sessions", "event"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["event"]) -> Literal["state", "error"] | None: ...

class SleepRequest(Message):
    @property
    def tags(self) -> RepeatedScalarFieldContainer[str]: ...
    mode: int
    discard_weights: bool
    def __init__(
        self,
        *,
        tags: Iterable[str] | None = ...,
        mode: int | None = ...,
        discard_weights: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["discard_weights"]) -> bool: ...

class WakeUpRequest(Message):
    @property
    def tags(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        tags: Iterable[str] | None = ...,
    ) -> None: ...

class WeightSource(Message):
    disk_path: str
    @property
    def backend_info(self) -> Struct: ...
    def __init__(
        self,
        *,
        disk_path: str | None = ...,
        backend_info: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["disk_path", "backend_info", "source"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["source"]) -> Literal["disk_path", "backend_info"] | None: ...

class BeginWeightUpdateRequest(Message):
    model: str
    component: str
    backend: str
    @property
    def init_info(self) -> Struct: ...
    def __init__(
        self,
        *,
        model: str | None = ...,
        component: str | None = ...,
        backend: str | None = ...,
        init_info: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["init_info"]) -> bool: ...

class BeginWeightUpdateResponse(Message):
    update_id: str
    def __init__(
        self,
        *,
        update_id: str | None = ...,
    ) -> None: ...

class ApplyWeightUpdateRequest(Message):
    update_id: str
    @property
    def weights(self) -> WeightSource: ...
    def __init__(
        self,
        *,
        update_id: str | None = ...,
        weights: WeightSource | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["weights"]) -> bool: ...

class ApplyWeightUpdateResponse(Message):
    applied_tensors: int
    def __init__(
        self,
        *,
        applied_tensors: int | None = ...,
    ) -> None: ...

class FinishWeightUpdateRequest(Message):
    update_id: str
    commit: bool
    weight_version: str
    reset_caches: bool
    def __init__(
        self,
        *,
        update_id: str | None = ...,
        commit: bool | None = ...,
        weight_version: str | None = ...,
        reset_caches: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["reset_caches"]) -> bool: ...

class StartProfileRequest(Message):
    output_dir: str
    def __init__(
        self,
        *,
        output_dir: str | None = ...,
    ) -> None: ...

class StartProfileResponse(Message):
    def __init__(self) -> None: ...

class StopProfileRequest(Message):
    def __init__(self) -> None: ...

class StopProfileResponse(Message):
    @property
    def artifacts(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        artifacts: Iterable[str] | None = ...,
    ) -> None: ...

class AdminCapabilities(Message):
    @property
    def operations(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def pause_modes(self) -> RepeatedScalarFieldContainer[int]: ...
    paused_admission: int
    @property
    def cache_kinds(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def sleep_tags(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def weight_backends(self) -> RepeatedScalarFieldContainer[str]: ...
    weight_update_requires_pause: bool
    def __init__(
        self,
        *,
        operations: Iterable[int] | None = ...,
        pause_modes: Iterable[int] | None = ...,
        paused_admission: int | None = ...,
        cache_kinds: Iterable[int] | None = ...,
        sleep_tags: Iterable[str] | None = ...,
        weight_backends: Iterable[str] | None = ...,
        weight_update_requires_pause: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["weight_update_requires_pause"]) -> bool: ...

StorageMedium: EnumTypeWrapper
STORAGE_MEDIUM_UNSPECIFIED: Final = 0
STORAGE_MEDIUM_GPU: Final = 1
STORAGE_MEDIUM_CPU_PINNED: Final = 2
STORAGE_MEDIUM_DISK: Final = 3
STORAGE_MEDIUM_EXTERNAL: Final = 4

class KvEndpoint(Message):
    host: str
    port: int
    protocol: str
    def __init__(
        self,
        *,
        host: str | None = ...,
        port: int | None = ...,
        protocol: str | None = ...,
    ) -> None: ...

class KvSessionRef(Message):
    session_id: str
    transfer_backend: str
    @property
    def endpoints(self) -> RepeatedCompositeFieldContainer[KvEndpoint]: ...
    dp_rank: int
    @property
    def attributes_struct(self) -> Struct: ...
    def __init__(
        self,
        *,
        session_id: str | None = ...,
        transfer_backend: str | None = ...,
        endpoints: Iterable[KvEndpoint] | None = ...,
        dp_rank: int | None = ...,
        attributes_struct: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["attributes_struct"]) -> bool: ...

class KvConnectorInfo(Message):
    enabled: bool
    transfer_backend: str
    @property
    def local_endpoints(self) -> RepeatedCompositeFieldContainer[KvEndpoint]: ...
    @property
    def supported_protocols(self) -> RepeatedScalarFieldContainer[str]: ...
    supports_remote_prefill: bool
    supports_decode_pull: bool
    supports_abort_cleanup: bool
    schema_version: int
    def __init__(
        self,
        *,
        enabled: bool | None = ...,
        transfer_backend: str | None = ...,
        local_endpoints: Iterable[KvEndpoint] | None = ...,
        supported_protocols: Iterable[str] | None = ...,
        supports_remote_prefill: bool | None = ...,
        supports_decode_pull: bool | None = ...,
        supports_abort_cleanup: bool | None = ...,
        schema_version: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["enabled", "supports_remote_prefill", "supports_decode_pull", "supports_abort_cleanup", "schema_version"]) -> bool: ...

class GetKvEventSourcesRequest(Message):
    @property
    def data_parallel_ranks(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        data_parallel_ranks: Iterable[int] | None = ...,
    ) -> None: ...

class GetKvEventSourcesResponse(Message):
    @property
    def sources(self) -> RepeatedCompositeFieldContainer[KvEventSource]: ...
    def __init__(
        self,
        *,
        sources: Iterable[KvEventSource] | None = ...,
    ) -> None: ...

class KvEventSource(Message):
    transport: str
    @property
    def endpoint_addr(self) -> KvEndpoint: ...
    topic: str
    replay_endpoint: str
    data_parallel_rank: int
    encoding: str
    schema_version: int
    buffer_steps: int
    hwm: int
    max_queue_size: int
    def __init__(
        self,
        *,
        transport: str | None = ...,
        endpoint_addr: KvEndpoint | None = ...,
        topic: str | None = ...,
        replay_endpoint: str | None = ...,
        data_parallel_rank: int | None = ...,
        encoding: str | None = ...,
        schema_version: int | None = ...,
        buffer_steps: int | None = ...,
        hwm: int | None = ...,
        max_queue_size: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["endpoint_addr", "data_parallel_rank", "schema_version", "buffer_steps", "hwm", "max_queue_size"]) -> bool: ...

class SubscribeKvEventsRequest(Message):
    @property
    def data_parallel_ranks(self) -> RepeatedScalarFieldContainer[int]: ...
    include_snapshot: bool
    start_sequence_number: int
    def __init__(
        self,
        *,
        data_parallel_ranks: Iterable[int] | None = ...,
        include_snapshot: bool | None = ...,
        start_sequence_number: int | None = ...,
    ) -> None: ...

class SubscribeKvEventsResponse(Message):
    @property
    def batch(self) -> KvEventBatch: ...
    @property
    def error(self) -> EngineError: ...
    def __init__(
        self,
        *,
        batch: KvEventBatch | None = ...,
        error: EngineError | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["batch", "error", "event"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["event"]) -> Literal["batch", "error"] | None: ...

class KvEventBatch(Message):
    sequence_number: int
    timestamp_unix_nanos: int
    data_parallel_rank: int
    @property
    def events(self) -> RepeatedCompositeFieldContainer[KvEvent]: ...
    def __init__(
        self,
        *,
        sequence_number: int | None = ...,
        timestamp_unix_nanos: int | None = ...,
        data_parallel_rank: int | None = ...,
        events: Iterable[KvEvent] | None = ...,
    ) -> None: ...

class KvEvent(Message):
    request_id: str
    @property
    def kv_session(self) -> KvSessionRef: ...
    @property
    def block_stored(self) -> BlockStored: ...
    @property
    def block_removed(self) -> BlockRemoved: ...
    @property
    def all_blocks_cleared(self) -> AllBlocksCleared: ...
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        kv_session: KvSessionRef | None = ...,
        block_stored: BlockStored | None = ...,
        block_removed: BlockRemoved | None = ...,
        all_blocks_cleared: AllBlocksCleared | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["kv_session", "block_stored", "block_removed", "all_blocks_cleared", "event"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["event"]) -> Literal["block_stored", "block_removed", "all_blocks_cleared"] | None: ...

class BlockStored(Message):
    @property
    def block_hashes(self) -> RepeatedCompositeFieldContainer[KvBlockHash]: ...
    @property
    def parent_block_hash(self) -> KvBlockHash: ...
    @property
    def token_ids(self) -> RepeatedScalarFieldContainer[int]: ...
    block_size: int
    lora_id: int
    lora_name: str
    medium: int
    @property
    def extra_keys(self) -> RepeatedCompositeFieldContainer[OpaqueKeyTuple]: ...
    group_idx: int
    kv_cache_spec_kind: str
    kv_cache_spec_sliding_window: int
    def __init__(
        self,
        *,
        block_hashes: Iterable[KvBlockHash] | None = ...,
        parent_block_hash: KvBlockHash | None = ...,
        token_ids: Iterable[int] | None = ...,
        block_size: int | None = ...,
        lora_id: int | None = ...,
        lora_name: str | None = ...,
        medium: int | None = ...,
        extra_keys: Iterable[OpaqueKeyTuple] | None = ...,
        group_idx: int | None = ...,
        kv_cache_spec_kind: str | None = ...,
        kv_cache_spec_sliding_window: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["parent_block_hash"]) -> bool: ...

class BlockRemoved(Message):
    @property
    def block_hashes(self) -> RepeatedCompositeFieldContainer[KvBlockHash]: ...
    medium: int
    group_idx: int
    def __init__(
        self,
        *,
        block_hashes: Iterable[KvBlockHash] | None = ...,
        medium: int | None = ...,
        group_idx: int | None = ...,
    ) -> None: ...

class AllBlocksCleared(Message):
    def __init__(self) -> None: ...

class KvBlockHash(Message):
    value: bytes
    encoding: str
    def __init__(
        self,
        *,
        value: bytes | None = ...,
        encoding: str | None = ...,
    ) -> None: ...

class OpaqueKeyTuple(Message):
    @property
    def values(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        values: Iterable[str] | None = ...,
    ) -> None: ...

Modality: EnumTypeWrapper
MODALITY_UNSPECIFIED: Final = 0
MODALITY_IMAGE: Final = 1
MODALITY_VIDEO: Final = 2
MODALITY_AUDIO: Final = 3

FinishReason: EnumTypeWrapper
FINISH_REASON_UNSPECIFIED: Final = 0
FINISH_REASON_STOP: Final = 1
FINISH_REASON_LENGTH: Final = 2
FINISH_REASON_CANCELLED: Final = 3

class GenerateRequest(Message):
    request_id: str
    model: str
    prompt: str
    @property
    def token_ids(self) -> TokenIds: ...
    @property
    def sampling(self) -> SamplingParams: ...
    @property
    def stopping(self) -> StoppingOptions: ...
    @property
    def response(self) -> ResponseOptions: ...
    @property
    def kv(self) -> KvOptions: ...
    @property
    def guided(self) -> GuidedDecoding: ...
    @property
    def media(self) -> RepeatedCompositeFieldContainer[MediaItem]: ...
    lora_name: str
    @property
    def extra(self) -> Struct: ...
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        model: str | None = ...,
        prompt: str | None = ...,
        token_ids: TokenIds | None = ...,
        sampling: SamplingParams | None = ...,
        stopping: StoppingOptions | None = ...,
        response: ResponseOptions | None = ...,
        kv: KvOptions | None = ...,
        guided: GuidedDecoding | None = ...,
        media: Iterable[MediaItem] | None = ...,
        lora_name: str | None = ...,
        extra: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["prompt", "token_ids", "sampling", "stopping", "response", "kv", "guided", "extra", "input"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["input"]) -> Literal["prompt", "token_ids"] | None: ...

class TokenIds(Message):
    @property
    def ids(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        ids: Iterable[int] | None = ...,
    ) -> None: ...

class MediaItem(Message):
    modality: int
    url: str
    data_uri: str
    raw_bytes: bytes
    mime_type: str
    uuid: str
    def __init__(
        self,
        *,
        modality: int | None = ...,
        url: str | None = ...,
        data_uri: str | None = ...,
        raw_bytes: bytes | None = ...,
        mime_type: str | None = ...,
        uuid: str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["url", "data_uri", "raw_bytes", "source"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["source"]) -> Literal["url", "data_uri", "raw_bytes"] | None: ...

class SamplingParams(Message):
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    frequency_penalty: float
    presence_penalty: float
    repetition_penalty: float
    seed: int
    num_sequences: int
    def __init__(
        self,
        *,
        temperature: float | None = ...,
        top_p: float | None = ...,
        top_k: int | None = ...,
        min_p: float | None = ...,
        frequency_penalty: float | None = ...,
        presence_penalty: float | None = ...,
        repetition_penalty: float | None = ...,
        seed: int | None = ...,
        num_sequences: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty", "seed", "num_sequences"]) -> bool: ...

class StoppingOptions(Message):
    max_tokens: int
    min_tokens: int
    @property
    def conditions(self) -> RepeatedCompositeFieldContainer[StopCondition]: ...
    ignore_eos: bool
    include_stop_in_output: bool
    def __init__(
        self,
        *,
        max_tokens: int | None = ...,
        min_tokens: int | None = ...,
        conditions: Iterable[StopCondition] | None = ...,
        ignore_eos: bool | None = ...,
        include_stop_in_output: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["max_tokens", "min_tokens", "ignore_eos", "include_stop_in_output"]) -> bool: ...

class StopCondition(Message):
    stop_text: str
    stop_token_id: int
    def __init__(
        self,
        *,
        stop_text: str | None = ...,
        stop_token_id: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["stop_text", "stop_token_id", "condition"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["condition"]) -> Literal["stop_text", "stop_token_id"] | None: ...

class ResponseOptions(Message):
    return_prompt_logprobs: bool
    @property
    def prompt_candidates(self) -> CandidateTokenSelection: ...
    return_output_logprobs: bool
    @property
    def output_candidates(self) -> CandidateTokenSelection: ...
    prompt_logprob_start: int
    def __init__(
        self,
        *,
        return_prompt_logprobs: bool | None = ...,
        prompt_candidates: CandidateTokenSelection | None = ...,
        return_output_logprobs: bool | None = ...,
        output_candidates: CandidateTokenSelection | None = ...,
        prompt_logprob_start: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["return_prompt_logprobs", "prompt_candidates", "return_output_logprobs", "output_candidates", "prompt_logprob_start"]) -> bool: ...

class CandidateTokenSelection(Message):
    top_n: int
    @property
    def token_ids(self) -> TokenIds: ...
    @property
    def all(self) -> AllCandidates: ...
    def __init__(
        self,
        *,
        top_n: int | None = ...,
        token_ids: TokenIds | None = ...,
        all: AllCandidates | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["top_n", "token_ids", "all", "selection"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["selection"]) -> Literal["top_n", "token_ids", "all"] | None: ...

class AllCandidates(Message):
    def __init__(self) -> None: ...

class KvOptions(Message):
    @property
    def session(self) -> KvSessionRef: ...
    bypass_prefix_cache: bool
    cache_salt: str
    def __init__(
        self,
        *,
        session: KvSessionRef | None = ...,
        bypass_prefix_cache: bool | None = ...,
        cache_salt: str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["session", "bypass_prefix_cache", "cache_salt"]) -> bool: ...

class GuidedDecoding(Message):
    json_schema: str
    regex: str
    ebnf_grammar: str
    structural_tag: str
    @property
    def choice(self) -> ChoiceConstraint: ...
    @property
    def json_object(self) -> JsonObjectConstraint: ...
    backend: str
    def __init__(
        self,
        *,
        json_schema: str | None = ...,
        regex: str | None = ...,
        ebnf_grammar: str | None = ...,
        structural_tag: str | None = ...,
        choice: ChoiceConstraint | None = ...,
        json_object: JsonObjectConstraint | None = ...,
        backend: str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["json_schema", "regex", "ebnf_grammar", "structural_tag", "choice", "json_object", "guide"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["guide"]) -> Literal["json_schema", "regex", "ebnf_grammar", "structural_tag", "choice", "json_object"] | None: ...

class ChoiceConstraint(Message):
    @property
    def choices(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        choices: Iterable[str] | None = ...,
    ) -> None: ...

class JsonObjectConstraint(Message):
    def __init__(self) -> None: ...

class GenerateResponse(Message):
    request_id: str
    @property
    def prompt(self) -> PromptOutput: ...
    @property
    def token(self) -> TokenOutput: ...
    @property
    def prefill_ready(self) -> PrefillReady: ...
    @property
    def finished(self) -> GenerationFinished: ...
    @property
    def error(self) -> EngineError: ...
    @property
    def usage(self) -> Usage: ...
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        prompt: PromptOutput | None = ...,
        token: TokenOutput | None = ...,
        prefill_ready: PrefillReady | None = ...,
        finished: GenerationFinished | None = ...,
        error: EngineError | None = ...,
        usage: Usage | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["prompt", "token", "prefill_ready", "finished", "error", "usage", "event"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["event"]) -> Literal["prompt", "token", "prefill_ready", "finished", "error"] | None: ...

class PromptOutput(Message):
    @property
    def tokens(self) -> RepeatedCompositeFieldContainer[TokenInfo]: ...
    def __init__(
        self,
        *,
        tokens: Iterable[TokenInfo] | None = ...,
    ) -> None: ...

class TokenOutput(Message):
    output_index: int
    @property
    def tokens(self) -> RepeatedCompositeFieldContainer[TokenInfo]: ...
    text: str
    def __init__(
        self,
        *,
        output_index: int | None = ...,
        tokens: Iterable[TokenInfo] | None = ...,
        text: str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["output_index"]) -> bool: ...

class TokenInfo(Message):
    token_id: int
    token: str
    logprob: float
    rank: int
    @property
    def candidates(self) -> RepeatedCompositeFieldContainer[LogProb]: ...
    def __init__(
        self,
        *,
        token_id: int | None = ...,
        token: str | None = ...,
        logprob: float | None = ...,
        rank: int | None = ...,
        candidates: Iterable[LogProb] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["logprob", "rank"]) -> bool: ...

class LogProb(Message):
    token_id: int
    logprob: float
    token: str
    rank: int
    def __init__(
        self,
        *,
        token_id: int | None = ...,
        logprob: float | None = ...,
        token: str | None = ...,
        rank: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["rank"]) -> bool: ...

class PrefillReady(Message):
    @property
    def kv_session(self) -> KvSessionRef: ...
    def __init__(
        self,
        *,
        kv_session: KvSessionRef | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["kv_session"]) -> bool: ...

class GenerationFinished(Message):
    output_index: int
    reason: int
    message: str
    @property
    def stop_match(self) -> StopMatch: ...
    def __init__(
        self,
        *,
        output_index: int | None = ...,
        reason: int | None = ...,
        message: str | None = ...,
        stop_match: StopMatch | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["output_index", "stop_match"]) -> bool: ...

class StopMatch(Message):
    stop_token_id: int
    stop_text: str
    eos_token_id: int
    def __init__(
        self,
        *,
        stop_token_id: int | None = ...,
        stop_text: str | None = ...,
        eos_token_id: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["stop_token_id", "stop_text", "eos_token_id", "match"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["match"]) -> Literal["stop_token_id", "stop_text", "eos_token_id"] | None: ...

class Usage(Message):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_prompt_tokens: int
    reasoning_tokens: int
    def __init__(
        self,
        *,
        prompt_tokens: int | None = ...,
        completion_tokens: int | None = ...,
        total_tokens: int | None = ...,
        cached_prompt_tokens: int | None = ...,
        reasoning_tokens: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["cached_prompt_tokens", "reasoning_tokens"]) -> bool: ...

EncoderRole: EnumTypeWrapper
ENCODER_ROLE_UNSPECIFIED: Final = 0
ENCODER_ROLE_PRODUCER: Final = 1
ENCODER_ROLE_CONSUMER: Final = 2

class EncodeRequest(Message):
    request_id: str
    model: str
    @property
    def items(self) -> RepeatedCompositeFieldContainer[EncodeItem]: ...
    @property
    def consumer_endpoints(self) -> RepeatedCompositeFieldContainer[KvEndpoint]: ...
    @property
    def extra(self) -> Struct: ...
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        model: str | None = ...,
        items: Iterable[EncodeItem] | None = ...,
        consumer_endpoints: Iterable[KvEndpoint] | None = ...,
        extra: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["extra"]) -> bool: ...

class EncodeItem(Message):
    item_id: str
    @property
    def media(self) -> MediaItem: ...
    def __init__(
        self,
        *,
        item_id: str | None = ...,
        media: MediaItem | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["media"]) -> bool: ...

class EncodeResponse(Message):
    request_id: str
    @property
    def output(self) -> EncoderOutput: ...
    @property
    def finished(self) -> EncodeFinished: ...
    @property
    def error(self) -> EngineError: ...
    @property
    def usage(self) -> EncoderUsage: ...
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        output: EncoderOutput | None = ...,
        finished: EncodeFinished | None = ...,
        error: EngineError | None = ...,
        usage: EncoderUsage | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["output", "finished", "error", "usage", "event"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["event"]) -> Literal["output", "finished", "error"] | None: ...

class EncoderOutput(Message):
    item_id: str
    item_index: int
    @property
    def ref(self) -> EncoderOutputRef: ...
    cached: bool
    def __init__(
        self,
        *,
        item_id: str | None = ...,
        item_index: int | None = ...,
        ref: EncoderOutputRef | None = ...,
        cached: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["item_index", "ref"]) -> bool: ...

class EncodeFinished(Message):
    def __init__(self) -> None: ...

class EncoderUsage(Message):
    items: int
    encoder_tokens: int
    cached_items: int
    def __init__(
        self,
        *,
        items: int | None = ...,
        encoder_tokens: int | None = ...,
        cached_items: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["cached_items"]) -> bool: ...

class EncoderOutputRef(Message):
    output_id: str
    transfer_backend: str
    @property
    def endpoints(self) -> RepeatedCompositeFieldContainer[KvEndpoint]: ...
    modality: int
    token_count: int
    @property
    def shape(self) -> RepeatedScalarFieldContainer[int]: ...
    dtype: str
    content_hash: str
    expires_at_unix_nanos: int
    producer_instance_id: str
    @property
    def attributes_struct(self) -> Struct: ...
    def __init__(
        self,
        *,
        output_id: str | None = ...,
        transfer_backend: str | None = ...,
        endpoints: Iterable[KvEndpoint] | None = ...,
        modality: int | None = ...,
        token_count: int | None = ...,
        shape: Iterable[int] | None = ...,
        dtype: str | None = ...,
        content_hash: str | None = ...,
        expires_at_unix_nanos: int | None = ...,
        producer_instance_id: str | None = ...,
        attributes_struct: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["attributes_struct"]) -> bool: ...

class ReleaseEncoderOutputsRequest(Message):
    @property
    def output_ids(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        output_ids: Iterable[str] | None = ...,
    ) -> None: ...

class ReleaseEncoderOutputsResponse(Message):
    @property
    def released(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def not_found(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        released: Iterable[str] | None = ...,
        not_found: Iterable[str] | None = ...,
    ) -> None: ...

class EncoderInput(Message):
    media_index: int
    @property
    def ref(self) -> EncoderOutputRef: ...
    def __init__(
        self,
        *,
        media_index: int | None = ...,
        ref: EncoderOutputRef | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["ref"]) -> bool: ...

class GenerateEncodedRequest(Message):
    @property
    def request(self) -> GenerateRequest: ...
    @property
    def encoder_inputs(self) -> RepeatedCompositeFieldContainer[EncoderInput]: ...
    def __init__(
        self,
        *,
        request: GenerateRequest | None = ...,
        encoder_inputs: Iterable[EncoderInput] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["request"]) -> bool: ...

class EncoderCapabilities(Message):
    @property
    def roles(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def modalities(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def transfer_backends(self) -> RepeatedScalarFieldContainer[str]: ...
    max_items_per_request: int
    output_ttl_ms: int
    single_use: bool
    max_open_outputs: int
    push: bool
    pull: bool
    def __init__(
        self,
        *,
        roles: Iterable[int] | None = ...,
        modalities: Iterable[int] | None = ...,
        transfer_backends: Iterable[str] | None = ...,
        max_items_per_request: int | None = ...,
        output_ttl_ms: int | None = ...,
        single_use: bool | None = ...,
        max_open_outputs: int | None = ...,
        push: bool | None = ...,
        pull: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["max_items_per_request", "output_ttl_ms", "single_use", "max_open_outputs", "push", "pull"]) -> bool: ...

CandidateTokenSelectionMode: EnumTypeWrapper
CANDIDATE_TOKEN_SELECTION_MODE_UNSPECIFIED: Final = 0
CANDIDATE_TOKEN_SELECTION_MODE_TOP_N: Final = 1
CANDIDATE_TOKEN_SELECTION_MODE_TOKEN_IDS: Final = 2
CANDIDATE_TOKEN_SELECTION_MODE_ALL: Final = 3

GuidedDecodingMode: EnumTypeWrapper
GUIDED_DECODING_MODE_UNSPECIFIED: Final = 0
GUIDED_DECODING_MODE_JSON_SCHEMA: Final = 1
GUIDED_DECODING_MODE_REGEX: Final = 2
GUIDED_DECODING_MODE_EBNF_GRAMMAR: Final = 3
GUIDED_DECODING_MODE_STRUCTURAL_TAG: Final = 4
GUIDED_DECODING_MODE_CHOICE: Final = 5
GUIDED_DECODING_MODE_JSON_OBJECT: Final = 6

class GetModelInfoRequest(Message):
    model: str
    def __init__(
        self,
        *,
        model: str | None = ...,
    ) -> None: ...

class ModelInfo(Message):
    model_id: str
    served_model_name: str
    @property
    def served_model_aliases(self) -> RepeatedScalarFieldContainer[str]: ...
    max_context_length: int
    max_output_tokens: int
    @property
    def tokenizer_modes(self) -> RepeatedScalarFieldContainer[str]: ...
    supports_text_input: bool
    supports_token_ids_input: bool
    @property
    def generation(self) -> GenerationCapabilities: ...
    supports_lora: bool
    supports_multimodal: bool
    reasoning_parser: str
    tool_call_parser: str
    @property
    def extra(self) -> Struct: ...
    def __init__(
        self,
        *,
        model_id: str | None = ...,
        served_model_name: str | None = ...,
        served_model_aliases: Iterable[str] | None = ...,
        max_context_length: int | None = ...,
        max_output_tokens: int | None = ...,
        tokenizer_modes: Iterable[str] | None = ...,
        supports_text_input: bool | None = ...,
        supports_token_ids_input: bool | None = ...,
        generation: GenerationCapabilities | None = ...,
        supports_lora: bool | None = ...,
        supports_multimodal: bool | None = ...,
        reasoning_parser: str | None = ...,
        tool_call_parser: str | None = ...,
        extra: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["max_context_length", "max_output_tokens", "supports_text_input", "supports_token_ids_input", "generation", "supports_lora", "supports_multimodal", "extra"]) -> bool: ...

class GenerationCapabilities(Message):
    @property
    def prompt_logprobs(self) -> LogprobCapabilities: ...
    @property
    def output_logprobs(self) -> LogprobCapabilities: ...
    @property
    def guided_decoding(self) -> GuidedDecodingCapabilities: ...
    max_num_sequences: int
    supports_priority: bool
    supports_stop_in_output: bool
    supports_cache_salt: bool
    supports_prefix_cache_bypass: bool
    def __init__(
        self,
        *,
        prompt_logprobs: LogprobCapabilities | None = ...,
        output_logprobs: LogprobCapabilities | None = ...,
        guided_decoding: GuidedDecodingCapabilities | None = ...,
        max_num_sequences: int | None = ...,
        supports_priority: bool | None = ...,
        supports_stop_in_output: bool | None = ...,
        supports_cache_salt: bool | None = ...,
        supports_prefix_cache_bypass: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["prompt_logprobs", "output_logprobs", "guided_decoding", "max_num_sequences", "supports_priority", "supports_stop_in_output", "supports_cache_salt", "supports_prefix_cache_bypass"]) -> bool: ...

class LogprobCapabilities(Message):
    supported: bool
    @property
    def candidate_selection_modes(self) -> RepeatedScalarFieldContainer[int]: ...
    max_top_n: int
    def __init__(
        self,
        *,
        supported: bool | None = ...,
        candidate_selection_modes: Iterable[int] | None = ...,
        max_top_n: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["supported", "max_top_n"]) -> bool: ...

class GuidedDecodingCapabilities(Message):
    supported: bool
    @property
    def modes(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        supported: bool | None = ...,
        modes: Iterable[int] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["supported"]) -> bool: ...

EngineRole: EnumTypeWrapper
ENGINE_ROLE_UNSPECIFIED: Final = 0
ENGINE_ROLE_AGGREGATED: Final = 1
ENGINE_ROLE_PREFILL: Final = 2
ENGINE_ROLE_DECODE: Final = 3

class GetServerInfoRequest(Message):
    def __init__(self) -> None: ...

class ServerInfo(Message):
    engine_name: str
    engine_version: str
    engine_role: int
    instance_id: str
    @property
    def supported_models(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def parallelism(self) -> ParallelismInfo: ...
    @property
    def kv_connector(self) -> KvConnectorInfo: ...
    schema_revision: int
    minimum_client_revision: int
    schema_release: str
    @property
    def capacity(self) -> DeploymentCapacity: ...
    @property
    def extra(self) -> Struct: ...
    def __init__(
        self,
        *,
        engine_name: str | None = ...,
        engine_version: str | None = ...,
        engine_role: int | None = ...,
        instance_id: str | None = ...,
        supported_models: Iterable[str] | None = ...,
        parallelism: ParallelismInfo | None = ...,
        kv_connector: KvConnectorInfo | None = ...,
        schema_revision: int | None = ...,
        minimum_client_revision: int | None = ...,
        schema_release: str | None = ...,
        capacity: DeploymentCapacity | None = ...,
        extra: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["parallelism", "kv_connector", "capacity", "extra"]) -> bool: ...

class ParallelismInfo(Message):
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    data_parallel_rank: int
    data_parallel_start_rank: int
    decode_context_parallel_size: int
    def __init__(
        self,
        *,
        tensor_parallel_size: int | None = ...,
        pipeline_parallel_size: int | None = ...,
        data_parallel_size: int | None = ...,
        data_parallel_rank: int | None = ...,
        data_parallel_start_rank: int | None = ...,
        decode_context_parallel_size: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "data_parallel_rank", "data_parallel_start_rank", "decode_context_parallel_size"]) -> bool: ...

class DeploymentCapacity(Message):
    kv_block_size: int
    total_kv_blocks: int
    max_running_requests: int
    max_batched_tokens: int
    max_loras: int
    def __init__(
        self,
        *,
        kv_block_size: int | None = ...,
        total_kv_blocks: int | None = ...,
        max_running_requests: int | None = ...,
        max_batched_tokens: int | None = ...,
        max_loras: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["kv_block_size", "total_kv_blocks", "max_running_requests", "max_batched_tokens", "max_loras"]) -> bool: ...

class GetLoadRequest(Message):
    include_per_rank: bool
    def __init__(
        self,
        *,
        include_per_rank: bool | None = ...,
    ) -> None: ...

class LoadInfo(Message):
    instance_id: str
    timestamp_unix_nanos: int
    running_requests: int
    queued_requests: int
    active_kv_sessions: int
    used_kv_blocks: int
    total_kv_blocks: int
    running_tokens: int
    waiting_tokens: int
    prefill_batch_size: int
    decode_batch_size: int
    @property
    def ranks(self) -> RepeatedCompositeFieldContainer[RankLoadInfo]: ...
    @property
    def attributes(self) -> Struct: ...
    def __init__(
        self,
        *,
        instance_id: str | None = ...,
        timestamp_unix_nanos: int | None = ...,
        running_requests: int | None = ...,
        queued_requests: int | None = ...,
        active_kv_sessions: int | None = ...,
        used_kv_blocks: int | None = ...,
        total_kv_blocks: int | None = ...,
        running_tokens: int | None = ...,
        waiting_tokens: int | None = ...,
        prefill_batch_size: int | None = ...,
        decode_batch_size: int | None = ...,
        ranks: Iterable[RankLoadInfo] | None = ...,
        attributes: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp_unix_nanos", "running_requests", "queued_requests", "active_kv_sessions", "used_kv_blocks", "total_kv_blocks", "running_tokens", "waiting_tokens", "prefill_batch_size", "decode_batch_size", "attributes"]) -> bool: ...

class RankLoadInfo(Message):
    data_parallel_rank: int
    running_requests: int
    queued_requests: int
    used_kv_blocks: int
    total_kv_blocks: int
    prefill_batch_size: int
    decode_batch_size: int
    def __init__(
        self,
        *,
        data_parallel_rank: int | None = ...,
        running_requests: int | None = ...,
        queued_requests: int | None = ...,
        used_kv_blocks: int | None = ...,
        total_kv_blocks: int | None = ...,
        prefill_batch_size: int | None = ...,
        decode_batch_size: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["data_parallel_rank", "running_requests", "queued_requests", "used_kv_blocks", "total_kv_blocks", "prefill_batch_size", "decode_batch_size"]) -> bool: ...

RuntimeEventType: EnumTypeWrapper
RUNTIME_EVENT_TYPE_UNSPECIFIED: Final = 0
RUNTIME_EVENT_TYPE_FORWARD_PASS: Final = 1
RUNTIME_EVENT_TYPE_BATCH: Final = 2
RUNTIME_EVENT_TYPE_QUEUE: Final = 3
RUNTIME_EVENT_TYPE_TRANSFER: Final = 4
RUNTIME_EVENT_TYPE_SUBSCRIBED: Final = 100
RUNTIME_EVENT_TYPE_CAPABILITIES_CHANGED: Final = 101
RUNTIME_EVENT_TYPE_HEALTH_CHANGED: Final = 102
RUNTIME_EVENT_TYPE_ADMIN_STATE_CHANGED: Final = 103
RUNTIME_EVENT_TYPE_ADAPTERS_CHANGED: Final = 104
RUNTIME_EVENT_TYPE_WEIGHTS_CHANGED: Final = 105

class WatchLoadRequest(Message):
    min_interval_ms: int
    heartbeat_interval_ms: int
    initial_snapshot: bool
    include_per_rank: bool
    @property
    def data_parallel_ranks(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        min_interval_ms: int | None = ...,
        heartbeat_interval_ms: int | None = ...,
        initial_snapshot: bool | None = ...,
        include_per_rank: bool | None = ...,
        data_parallel_ranks: Iterable[int] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["min_interval_ms", "heartbeat_interval_ms", "initial_snapshot", "include_per_rank"]) -> bool: ...

class WatchLoadResponse(Message):
    sequence_number: int
    timestamp_unix_nanos: int
    instance_id: str
    configuration_epoch: int
    capability_revision: int
    coalesced_events: int
    @property
    def settings(self) -> WatchLoadSettings: ...
    @property
    def snapshot(self) -> LoadSnapshot: ...
    @property
    def heartbeat(self) -> LoadHeartbeat: ...
    @property
    def error(self) -> EngineError: ...
    def __init__(
        self,
        *,
        sequence_number: int | None = ...,
        timestamp_unix_nanos: int | None = ...,
        instance_id: str | None = ...,
        configuration_epoch: int | None = ...,
        capability_revision: int | None = ...,
        coalesced_events: int | None = ...,
        settings: WatchLoadSettings | None = ...,
        snapshot: LoadSnapshot | None = ...,
        heartbeat: LoadHeartbeat | None = ...,
        error: EngineError | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["settings", "snapshot", "heartbeat", "error", "event"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["event"]) -> Literal["settings", "snapshot", "heartbeat", "error"] | None: ...

class WatchLoadSettings(Message):
    effective_min_interval_ms: int
    effective_heartbeat_interval_ms: int
    initial_snapshot: bool
    include_per_rank: bool
    @property
    def data_parallel_ranks(self) -> RepeatedScalarFieldContainer[int]: ...
    min_interval_clamped: bool
    heartbeat_interval_clamped: bool
    def __init__(
        self,
        *,
        effective_min_interval_ms: int | None = ...,
        effective_heartbeat_interval_ms: int | None = ...,
        initial_snapshot: bool | None = ...,
        include_per_rank: bool | None = ...,
        data_parallel_ranks: Iterable[int] | None = ...,
        min_interval_clamped: bool | None = ...,
        heartbeat_interval_clamped: bool | None = ...,
    ) -> None: ...

class LoadSnapshot(Message):
    @property
    def load(self) -> LoadInfo: ...
    @property
    def detail(self) -> LoadDetail: ...
    initial: bool
    def __init__(
        self,
        *,
        load: LoadInfo | None = ...,
        detail: LoadDetail | None = ...,
        initial: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["load", "detail"]) -> bool: ...

class LoadDetail(Message):
    waiting_uncached_tokens: int
    generation_tokens_per_second: float
    prefix_cache_hit_rate: float
    active_sessions: int
    held_requests: int
    sample_age_ms: int
    def __init__(
        self,
        *,
        waiting_uncached_tokens: int | None = ...,
        generation_tokens_per_second: float | None = ...,
        prefix_cache_hit_rate: float | None = ...,
        active_sessions: int | None = ...,
        held_requests: int | None = ...,
        sample_age_ms: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["waiting_uncached_tokens", "generation_tokens_per_second", "prefix_cache_hit_rate", "active_sessions", "held_requests", "sample_age_ms"]) -> bool: ...

class LoadHeartbeat(Message):
    last_snapshot_sequence_number: int
    def __init__(
        self,
        *,
        last_snapshot_sequence_number: int | None = ...,
    ) -> None: ...

class ObservabilityCapabilities(Message):
    @property
    def load(self) -> LoadCapabilities: ...
    @property
    def runtime_events(self) -> RuntimeEventCapabilities: ...
    def __init__(
        self,
        *,
        load: LoadCapabilities | None = ...,
        runtime_events: RuntimeEventCapabilities | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["load", "runtime_events"]) -> bool: ...

class LoadCapabilities(Message):
    min_interval_floor_ms: int
    min_interval_ceiling_ms: int
    min_interval_default_ms: int
    heartbeat_floor_ms: int
    heartbeat_ceiling_ms: int
    heartbeat_default_ms: int
    heartbeat_can_be_disabled: bool
    max_watch_streams: int
    supports_per_rank: bool
    sample_period_ms: int
    @property
    def reported_fields(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        min_interval_floor_ms: int | None = ...,
        min_interval_ceiling_ms: int | None = ...,
        min_interval_default_ms: int | None = ...,
        heartbeat_floor_ms: int | None = ...,
        heartbeat_ceiling_ms: int | None = ...,
        heartbeat_default_ms: int | None = ...,
        heartbeat_can_be_disabled: bool | None = ...,
        max_watch_streams: int | None = ...,
        supports_per_rank: bool | None = ...,
        sample_period_ms: int | None = ...,
        reported_fields: Iterable[str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["heartbeat_can_be_disabled", "max_watch_streams", "supports_per_rank", "sample_period_ms"]) -> bool: ...

class SubscribeRuntimeEventsRequest(Message):
    @property
    def types(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        types: Iterable[int] | None = ...,
    ) -> None: ...

class SubscribeRuntimeEventsResponse(Message):
    @property
    def runtime_event(self) -> RuntimeEvent: ...
    @property
    def error(self) -> EngineError: ...
    sequence_number: int
    dropped_events: int
    def __init__(
        self,
        *,
        runtime_event: RuntimeEvent | None = ...,
        error: EngineError | None = ...,
        sequence_number: int | None = ...,
        dropped_events: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["runtime_event", "error", "event"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["event"]) -> Literal["runtime_event", "error"] | None: ...

class RuntimeEvent(Message):
    event_id: str
    timestamp_unix_nanos: int
    type: int
    @property
    def attributes(self) -> Struct: ...
    @property
    def capabilities_changed(self) -> CapabilitiesChanged: ...
    @property
    def health_changed(self) -> HealthChanged: ...
    def __init__(
        self,
        *,
        event_id: str | None = ...,
        timestamp_unix_nanos: int | None = ...,
        type: int | None = ...,
        attributes: Struct | Mapping[str, object] | None = ...,
        capabilities_changed: CapabilitiesChanged | None = ...,
        health_changed: HealthChanged | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["attributes", "capabilities_changed", "health_changed", "detail"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["detail"]) -> Literal["capabilities_changed", "health_changed"] | None: ...

class CapabilitiesChanged(Message):
    configuration_epoch: int
    capability_revision: int
    reconnect_required: bool
    def __init__(
        self,
        *,
        configuration_epoch: int | None = ...,
        capability_revision: int | None = ...,
        reconnect_required: bool | None = ...,
    ) -> None: ...

class HealthChanged(Message):
    service: str
    serving: bool
    reason: str
    def __init__(
        self,
        *,
        service: str | None = ...,
        serving: bool | None = ...,
        reason: str | None = ...,
    ) -> None: ...

class RuntimeEventCapabilities(Message):
    @property
    def types(self) -> RepeatedScalarFieldContainer[int]: ...
    max_subscribers: int
    buffer_events: int
    def __init__(
        self,
        *,
        types: Iterable[int] | None = ...,
        max_subscribers: int | None = ...,
        buffer_events: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["max_subscribers", "buffer_events"]) -> bool: ...

SessionMode: EnumTypeWrapper
SESSION_MODE_UNSPECIFIED: Final = 0
SESSION_MODE_APPEND: Final = 1
SESSION_MODE_BRANCH: Final = 2
SESSION_MODE_STREAMING_INPUT: Final = 3

SessionState: EnumTypeWrapper
SESSION_STATE_UNSPECIFIED: Final = 0
SESSION_STATE_OPEN: Final = 1
SESSION_STATE_CLOSING: Final = 2

SessionClosePolicy: EnumTypeWrapper
SESSION_CLOSE_POLICY_UNSPECIFIED: Final = 0
SESSION_CLOSE_POLICY_ABORT: Final = 1
SESSION_CLOSE_POLICY_WAIT: Final = 2

class OpenSessionRequest(Message):
    session_id: str
    model: str
    mode: int
    capacity_tokens: int
    idle_timeout_ms: int
    lora_name: str
    def __init__(
        self,
        *,
        session_id: str | None = ...,
        model: str | None = ...,
        mode: int | None = ...,
        capacity_tokens: int | None = ...,
        idle_timeout_ms: int | None = ...,
        lora_name: str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["capacity_tokens", "idle_timeout_ms"]) -> bool: ...

class OpenSessionResponse(Message):
    @property
    def session(self) -> SessionInfo: ...
    already_open: bool
    def __init__(
        self,
        *,
        session: SessionInfo | None = ...,
        already_open: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["session"]) -> bool: ...

class SessionInfo(Message):
    session_id: str
    model: str
    mode: int
    state: int
    effective_capacity_tokens: int
    effective_idle_timeout_ms: int
    context_tokens: int
    completed_turns: int
    @property
    def in_flight_request_ids(self) -> RepeatedScalarFieldContainer[str]: ...
    instance_id: str
    lora_name: str
    def __init__(
        self,
        *,
        session_id: str | None = ...,
        model: str | None = ...,
        mode: int | None = ...,
        state: int | None = ...,
        effective_capacity_tokens: int | None = ...,
        effective_idle_timeout_ms: int | None = ...,
        context_tokens: int | None = ...,
        completed_turns: int | None = ...,
        in_flight_request_ids: Iterable[str] | None = ...,
        instance_id: str | None = ...,
        lora_name: str | None = ...,
    ) -> None: ...

class SessionTurn(Message):
    session_id: str
    parent_request_id: str
    drop_previous_output: bool
    truncate_to_tokens: int
    def __init__(
        self,
        *,
        session_id: str | None = ...,
        parent_request_id: str | None = ...,
        drop_previous_output: bool | None = ...,
        truncate_to_tokens: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["parent_request_id", "drop_previous_output", "truncate_to_tokens"]) -> bool: ...

class GenerateTurnRequest(Message):
    @property
    def request(self) -> GenerateRequest: ...
    @property
    def turn(self) -> SessionTurn: ...
    @property
    def encoder_inputs(self) -> RepeatedCompositeFieldContainer[EncoderInput]: ...
    def __init__(
        self,
        *,
        request: GenerateRequest | None = ...,
        turn: SessionTurn | None = ...,
        encoder_inputs: Iterable[EncoderInput] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["request", "turn"]) -> bool: ...

class GetSessionRequest(Message):
    session_id: str
    def __init__(
        self,
        *,
        session_id: str | None = ...,
    ) -> None: ...

class CloseSessionRequest(Message):
    session_id: str
    policy: int
    def __init__(
        self,
        *,
        session_id: str | None = ...,
        policy: int | None = ...,
    ) -> None: ...

class CloseSessionResponse(Message):
    already_closed: bool
    aborted_turns: int
    def __init__(
        self,
        *,
        already_closed: bool | None = ...,
        aborted_turns: int | None = ...,
    ) -> None: ...

class SessionCapabilities(Message):
    @property
    def modes(self) -> RepeatedScalarFieldContainer[int]: ...
    max_sessions: int
    default_capacity_tokens: int
    max_capacity_tokens: int
    default_idle_timeout_ms: int
    max_idle_timeout_ms: int
    idle_timeout_can_be_disabled: bool
    max_turns: int
    def __init__(
        self,
        *,
        modes: Iterable[int] | None = ...,
        max_sessions: int | None = ...,
        default_capacity_tokens: int | None = ...,
        max_capacity_tokens: int | None = ...,
        default_idle_timeout_ms: int | None = ...,
        max_idle_timeout_ms: int | None = ...,
        idle_timeout_can_be_disabled: bool | None = ...,
        max_turns: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["max_sessions", "default_capacity_tokens", "max_capacity_tokens", "default_idle_timeout_ms", "max_idle_timeout_ms", "idle_timeout_can_be_disabled", "max_turns"]) -> bool: ...

StageKind: EnumTypeWrapper
STAGE_KIND_UNSPECIFIED: Final = 0
STAGE_KIND_AUTOREGRESSIVE: Final = 1
STAGE_KIND_DIFFUSION: Final = 2
STAGE_KIND_ENCODER: Final = 3
STAGE_KIND_DECODER: Final = 4
STAGE_KIND_POOLING: Final = 5

StageOutputKind: EnumTypeWrapper
STAGE_OUTPUT_KIND_UNSPECIFIED: Final = 0
STAGE_OUTPUT_KIND_TEXT: Final = 1
STAGE_OUTPUT_KIND_AUDIO: Final = 2
STAGE_OUTPUT_KIND_IMAGE: Final = 3
STAGE_OUTPUT_KIND_VIDEO: Final = 4
STAGE_OUTPUT_KIND_LATENT: Final = 5

AbortBehavior: EnumTypeWrapper
ABORT_BEHAVIOR_UNSPECIFIED: Final = 0
ABORT_BEHAVIOR_DELIVER_PREFIX: Final = 1
ABORT_BEHAVIOR_RETRY_WHOLE: Final = 2

StagePhase: EnumTypeWrapper
STAGE_PHASE_UNSPECIFIED: Final = 0
STAGE_PHASE_SUBMITTED: Final = 1
STAGE_PHASE_RUNNING: Final = 2
STAGE_PHASE_FORWARDED: Final = 3
STAGE_PHASE_COMPLETED: Final = 4
STAGE_PHASE_ABORTED: Final = 5
STAGE_PHASE_FAILED: Final = 6

RequestPhase: EnumTypeWrapper
REQUEST_PHASE_UNSPECIFIED: Final = 0
REQUEST_PHASE_QUEUED: Final = 1
REQUEST_PHASE_RUNNING: Final = 2
REQUEST_PHASE_SUCCEEDED: Final = 3
REQUEST_PHASE_ABORTED: Final = 4
REQUEST_PHASE_FAILED: Final = 5

StageOperation: EnumTypeWrapper
STAGE_OPERATION_UNSPECIFIED: Final = 0
STAGE_OPERATION_PAUSE: Final = 1
STAGE_OPERATION_RESUME: Final = 2
STAGE_OPERATION_SLEEP: Final = 3
STAGE_OPERATION_WAKE_UP: Final = 4
STAGE_OPERATION_RESET_CACHE: Final = 5

class GetPipelineRequest(Message):
    model: str
    def __init__(
        self,
        *,
        model: str | None = ...,
    ) -> None: ...

class PipelineInfo(Message):
    model: str
    pipeline_id: str
    pipeline_revision: int
    @property
    def stages(self) -> RepeatedCompositeFieldContainer[StageInfo]: ...
    @property
    def transitions(self) -> RepeatedCompositeFieldContainer[StageTransition]: ...
    entry_stage_id: str
    def __init__(
        self,
        *,
        model: str | None = ...,
        pipeline_id: str | None = ...,
        pipeline_revision: int | None = ...,
        stages: Iterable[StageInfo] | None = ...,
        transitions: Iterable[StageTransition] | None = ...,
        entry_stage_id: str | None = ...,
    ) -> None: ...

class StageInfo(Message):
    stage_id: str
    kind: int
    final_output: bool
    output_kind: int
    @property
    def input_sources(self) -> RepeatedScalarFieldContainer[str]: ...
    replicas: int
    abort_behavior: int
    def __init__(
        self,
        *,
        stage_id: str | None = ...,
        kind: int | None = ...,
        final_output: bool | None = ...,
        output_kind: int | None = ...,
        input_sources: Iterable[str] | None = ...,
        replicas: int | None = ...,
        abort_behavior: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["replicas"]) -> bool: ...

class StageTransition(Message):
    from_stage_id: str
    to_stage_id: str
    def __init__(
        self,
        *,
        from_stage_id: str | None = ...,
        to_stage_id: str | None = ...,
    ) -> None: ...

class ExecuteRequest(Message):
    @property
    def request(self) -> GenerateRequest: ...
    @property
    def output_stage_ids(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def overrides(self) -> RepeatedCompositeFieldContainer[StageOverride]: ...
    include_stage_events: bool
    @property
    def turn(self) -> SessionTurn: ...
    @property
    def encoder_inputs(self) -> RepeatedCompositeFieldContainer[EncoderInput]: ...
    def __init__(
        self,
        *,
        request: GenerateRequest | None = ...,
        output_stage_ids: Iterable[str] | None = ...,
        overrides: Iterable[StageOverride] | None = ...,
        include_stage_events: bool | None = ...,
        turn: SessionTurn | None = ...,
        encoder_inputs: Iterable[EncoderInput] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["request", "include_stage_events", "turn"]) -> bool: ...

class StageOverride(Message):
    stage_id: str
    @property
    def sampling(self) -> SamplingParams: ...
    @property
    def stopping(self) -> StoppingOptions: ...
    @property
    def extra(self) -> Struct: ...
    def __init__(
        self,
        *,
        stage_id: str | None = ...,
        sampling: SamplingParams | None = ...,
        stopping: StoppingOptions | None = ...,
        extra: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["sampling", "stopping", "extra"]) -> bool: ...

class ExecuteResponse(Message):
    request_id: str
    event_index: int
    timestamp_unix_nanos: int
    @property
    def accepted(self) -> ExecuteAccepted: ...
    @property
    def stage(self) -> StageEvent: ...
    @property
    def output(self) -> StageOutput: ...
    @property
    def output_finished(self) -> StageOutputFinished: ...
    @property
    def finished(self) -> ExecuteFinished: ...
    @property
    def error(self) -> EngineError: ...
    @property
    def usage(self) -> Usage: ...
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        event_index: int | None = ...,
        timestamp_unix_nanos: int | None = ...,
        accepted: ExecuteAccepted | None = ...,
        stage: StageEvent | None = ...,
        output: StageOutput | None = ...,
        output_finished: StageOutputFinished | None = ...,
        finished: ExecuteFinished | None = ...,
        error: EngineError | None = ...,
        usage: Usage | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["accepted", "stage", "output", "output_finished", "finished", "error", "usage", "event"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["event"]) -> Literal["accepted", "stage", "output", "output_finished", "finished", "error"] | None: ...

class ExecuteAccepted(Message):
    pipeline_id: str
    pipeline_revision: int
    @property
    def route(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def output_stage_ids(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        pipeline_id: str | None = ...,
        pipeline_revision: int | None = ...,
        route: Iterable[str] | None = ...,
        output_stage_ids: Iterable[str] | None = ...,
    ) -> None: ...

class StageEvent(Message):
    stage_id: str
    phase: int
    next_stage_id: str
    replica_id: str
    traceparent: str
    message: str
    def __init__(
        self,
        *,
        stage_id: str | None = ...,
        phase: int | None = ...,
        next_stage_id: str | None = ...,
        replica_id: str | None = ...,
        traceparent: str | None = ...,
        message: str | None = ...,
    ) -> None: ...

class StageOutput(Message):
    stage_id: str
    output_index: int
    @property
    def token(self) -> TokenOutput: ...
    @property
    def media(self) -> MediaChunk: ...
    def __init__(
        self,
        *,
        stage_id: str | None = ...,
        output_index: int | None = ...,
        token: TokenOutput | None = ...,
        media: MediaChunk | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["output_index", "token", "media", "payload"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["payload"]) -> Literal["token", "media"] | None: ...

class MediaChunk(Message):
    kind: int
    mime_type: str
    data: bytes
    @property
    def attributes(self) -> Struct: ...
    def __init__(
        self,
        *,
        kind: int | None = ...,
        mime_type: str | None = ...,
        data: bytes | None = ...,
        attributes: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["attributes"]) -> bool: ...

class StageOutputFinished(Message):
    stage_id: str
    output_index: int
    reason: int
    @property
    def stop_match(self) -> StopMatch: ...
    def __init__(
        self,
        *,
        stage_id: str | None = ...,
        output_index: int | None = ...,
        reason: int | None = ...,
        stop_match: StopMatch | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["output_index", "stop_match"]) -> bool: ...

class ExecuteFinished(Message):
    reason: int
    def __init__(
        self,
        *,
        reason: int | None = ...,
    ) -> None: ...

class GetRequestStateRequest(Message):
    request_id: str
    def __init__(
        self,
        *,
        request_id: str | None = ...,
    ) -> None: ...

class RequestState(Message):
    request_id: str
    phase: int
    @property
    def stages(self) -> RepeatedCompositeFieldContainer[StageState]: ...
    state_revision: int
    open_children: int
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        phase: int | None = ...,
        stages: Iterable[StageState] | None = ...,
        state_revision: int | None = ...,
        open_children: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["open_children"]) -> bool: ...

class StageState(Message):
    stage_id: str
    phase: int
    submissions: int
    def __init__(
        self,
        *,
        stage_id: str | None = ...,
        phase: int | None = ...,
        submissions: int | None = ...,
    ) -> None: ...

class ControlStagesRequest(Message):
    operation: int
    @property
    def stage_ids(self) -> RepeatedScalarFieldContainer[str]: ...
    correlation_id: str
    def __init__(
        self,
        *,
        operation: int | None = ...,
        stage_ids: Iterable[str] | None = ...,
        correlation_id: str | None = ...,
    ) -> None: ...

class ControlStagesResponse(Message):
    correlation_id: str
    @property
    def acks(self) -> RepeatedCompositeFieldContainer[StageAck]: ...
    def __init__(
        self,
        *,
        correlation_id: str | None = ...,
        acks: Iterable[StageAck] | None = ...,
    ) -> None: ...

class StageAck(Message):
    stage_id: str
    ok: bool
    @property
    def error(self) -> EngineError: ...
    def __init__(
        self,
        *,
        stage_id: str | None = ...,
        ok: bool | None = ...,
        error: EngineError | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["error"]) -> bool: ...

class OrchestrationCapabilities(Message):
    @property
    def models(self) -> RepeatedScalarFieldContainer[str]: ...
    max_stages: int
    stage_events: bool
    @property
    def stage_operations(self) -> RepeatedScalarFieldContainer[int]: ...
    multiple_output_stages: bool
    @property
    def output_kinds(self) -> RepeatedScalarFieldContainer[int]: ...
    request_state_retention_ms: int
    def __init__(
        self,
        *,
        models: Iterable[str] | None = ...,
        max_stages: int | None = ...,
        stage_events: bool | None = ...,
        stage_operations: Iterable[int] | None = ...,
        multiple_output_stages: bool | None = ...,
        output_kinds: Iterable[int] | None = ...,
        request_state_retention_ms: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["max_stages", "stage_events", "multiple_output_stages", "request_state_retention_ms"]) -> bool: ...

TaskOutputGranularity: EnumTypeWrapper
TASK_OUTPUT_GRANULARITY_UNSPECIFIED: Final = 0
TASK_OUTPUT_GRANULARITY_SEQUENCE: Final = 1
TASK_OUTPUT_GRANULARITY_TOKEN: Final = 2

EmbeddingEncoding: EnumTypeWrapper
EMBEDDING_ENCODING_UNSPECIFIED: Final = 0
EMBEDDING_ENCODING_DENSE: Final = 1
EMBEDDING_ENCODING_SPARSE: Final = 2

TaskValueSemantics: EnumTypeWrapper
TASK_VALUE_SEMANTICS_UNSPECIFIED: Final = 0
TASK_VALUE_SEMANTICS_LOGITS: Final = 1
TASK_VALUE_SEMANTICS_PROBABILITIES: Final = 2
TASK_VALUE_SEMANTICS_LOG_PROBABILITIES: Final = 3
TASK_VALUE_SEMANTICS_SIMILARITY: Final = 4
TASK_VALUE_SEMANTICS_RELEVANCE: Final = 5
TASK_VALUE_SEMANTICS_REWARD: Final = 6
TASK_VALUE_SEMANTICS_MODEL_DEFINED: Final = 7

ScoreNormalization: EnumTypeWrapper
SCORE_NORMALIZATION_UNSPECIFIED: Final = 0
SCORE_NORMALIZATION_NONE: Final = 1
SCORE_NORMALIZATION_SOFTMAX: Final = 2

TaskInputType: EnumTypeWrapper
TASK_INPUT_TYPE_UNSPECIFIED: Final = 0
TASK_INPUT_TYPE_TEXT: Final = 1
TASK_INPUT_TYPE_TOKEN_IDS: Final = 2
TASK_INPUT_TYPE_MULTIMODAL: Final = 3

class TaskRequestContext(Message):
    request_id: str
    model: str
    lora_name: str
    @property
    def extra(self) -> Struct: ...
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        model: str | None = ...,
        lora_name: str | None = ...,
        extra: Struct | Mapping[str, object] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["extra"]) -> bool: ...

class TaskInput(Message):
    item_id: str
    text: str
    @property
    def token_ids(self) -> TokenIds: ...
    @property
    def multimodal(self) -> MultimodalTaskInput: ...
    def __init__(
        self,
        *,
        item_id: str | None = ...,
        text: str | None = ...,
        token_ids: TokenIds | None = ...,
        multimodal: MultimodalTaskInput | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["text", "token_ids", "multimodal", "input"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["input"]) -> Literal["text", "token_ids", "multimodal"] | None: ...

class MultimodalTaskInput(Message):
    text: str
    @property
    def token_ids(self) -> TokenIds: ...
    @property
    def media(self) -> RepeatedCompositeFieldContainer[MediaItem]: ...
    def __init__(
        self,
        *,
        text: str | None = ...,
        token_ids: TokenIds | None = ...,
        media: Iterable[MediaItem] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["text", "token_ids", "prompt"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["prompt"]) -> Literal["text", "token_ids"] | None: ...

class DenseFloatTensor(Message):
    @property
    def shape(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def values(self) -> RepeatedScalarFieldContainer[float]: ...
    def __init__(
        self,
        *,
        shape: Iterable[int] | None = ...,
        values: Iterable[float] | None = ...,
    ) -> None: ...

class SparseFloatTensor(Message):
    @property
    def shape(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def indices(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def values(self) -> RepeatedScalarFieldContainer[float]: ...
    def __init__(
        self,
        *,
        shape: Iterable[int] | None = ...,
        indices: Iterable[int] | None = ...,
        values: Iterable[float] | None = ...,
    ) -> None: ...

class TaskUsage(Message):
    input_tokens: int
    cached_input_tokens: int
    def __init__(
        self,
        *,
        input_tokens: int | None = ...,
        cached_input_tokens: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["cached_input_tokens"]) -> bool: ...

class EmbedRequest(Message):
    @property
    def context(self) -> TaskRequestContext: ...
    @property
    def inputs(self) -> RepeatedCompositeFieldContainer[TaskInput]: ...
    @property
    def options(self) -> EmbedOptions: ...
    def __init__(
        self,
        *,
        context: TaskRequestContext | None = ...,
        inputs: Iterable[TaskInput] | None = ...,
        options: EmbedOptions | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["context", "options"]) -> bool: ...

class EmbedOptions(Message):
    granularity: int
    normalize: bool
    dimensions: int
    encoding: int
    def __init__(
        self,
        *,
        granularity: int | None = ...,
        normalize: bool | None = ...,
        dimensions: int | None = ...,
        encoding: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["granularity", "normalize", "dimensions", "encoding"]) -> bool: ...

class EmbedResponse(Message):
    request_id: str
    @property
    def outputs(self) -> RepeatedCompositeFieldContainer[EmbeddingOutput]: ...
    @property
    def usage(self) -> TaskUsage: ...
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        outputs: Iterable[EmbeddingOutput] | None = ...,
        usage: TaskUsage | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["usage"]) -> bool: ...

class EmbeddingOutput(Message):
    item_id: str
    input_index: int
    granularity: int
    @property
    def dense(self) -> DenseFloatTensor: ...
    @property
    def sparse(self) -> SparseFloatTensor: ...
    @property
    def token_ids(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        item_id: str | None = ...,
        input_index: int | None = ...,
        granularity: int | None = ...,
        dense: DenseFloatTensor | None = ...,
        sparse: SparseFloatTensor | None = ...,
        token_ids: Iterable[int] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["input_index", "dense", "sparse", "embedding"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["embedding"]) -> Literal["dense", "sparse"] | None: ...

class ClassifyRequest(Message):
    @property
    def context(self) -> TaskRequestContext: ...
    @property
    def inputs(self) -> RepeatedCompositeFieldContainer[TaskInput]: ...
    @property
    def options(self) -> ClassifyOptions: ...
    def __init__(
        self,
        *,
        context: TaskRequestContext | None = ...,
        inputs: Iterable[TaskInput] | None = ...,
        options: ClassifyOptions | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["context", "options"]) -> bool: ...

class ClassifyOptions(Message):
    granularity: int
    output_semantics: int
    def __init__(
        self,
        *,
        granularity: int | None = ...,
        output_semantics: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["granularity", "output_semantics"]) -> bool: ...

class ClassifyResponse(Message):
    request_id: str
    @property
    def outputs(self) -> RepeatedCompositeFieldContainer[ClassificationOutput]: ...
    @property
    def usage(self) -> TaskUsage: ...
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        outputs: Iterable[ClassificationOutput] | None = ...,
        usage: TaskUsage | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["usage"]) -> bool: ...

class ClassificationOutput(Message):
    item_id: str
    input_index: int
    granularity: int
    semantics: int
    @property
    def scores(self) -> DenseFloatTensor: ...
    @property
    def labels(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def token_ids(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        item_id: str | None = ...,
        input_index: int | None = ...,
        granularity: int | None = ...,
        semantics: int | None = ...,
        scores: DenseFloatTensor | None = ...,
        labels: Iterable[str] | None = ...,
        token_ids: Iterable[int] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["input_index", "scores"]) -> bool: ...

class ScoreRequest(Message):
    @property
    def context(self) -> TaskRequestContext: ...
    @property
    def groups(self) -> RepeatedCompositeFieldContainer[ScoreGroup]: ...
    @property
    def options(self) -> ScoreOptions: ...
    def __init__(
        self,
        *,
        context: TaskRequestContext | None = ...,
        groups: Iterable[ScoreGroup] | None = ...,
        options: ScoreOptions | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["context", "options"]) -> bool: ...

class ScoreGroup(Message):
    group_id: str
    @property
    def query(self) -> TaskInput: ...
    @property
    def candidates(self) -> RepeatedCompositeFieldContainer[TaskInput]: ...
    def __init__(
        self,
        *,
        group_id: str | None = ...,
        query: TaskInput | None = ...,
        candidates: Iterable[TaskInput] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["query"]) -> bool: ...

class ScoreOptions(Message):
    granularity: int
    output_semantics: int
    normalization: int
    @property
    def label_token_ids(self) -> RepeatedScalarFieldContainer[int]: ...
    instruction: str
    def __init__(
        self,
        *,
        granularity: int | None = ...,
        output_semantics: int | None = ...,
        normalization: int | None = ...,
        label_token_ids: Iterable[int] | None = ...,
        instruction: str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["granularity", "output_semantics"]) -> bool: ...

class ScoreResponse(Message):
    request_id: str
    @property
    def groups(self) -> RepeatedCompositeFieldContainer[ScoreGroupOutput]: ...
    granularity: int
    semantics: int
    higher_is_better: bool
    normalization: int
    @property
    def label_token_ids(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def usage(self) -> TaskUsage: ...
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        groups: Iterable[ScoreGroupOutput] | None = ...,
        granularity: int | None = ...,
        semantics: int | None = ...,
        higher_is_better: bool | None = ...,
        normalization: int | None = ...,
        label_token_ids: Iterable[int] | None = ...,
        usage: TaskUsage | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["higher_is_better", "usage"]) -> bool: ...

class ScoreGroupOutput(Message):
    group_id: str
    group_index: int
    @property
    def candidates(self) -> RepeatedCompositeFieldContainer[ScoreCandidateOutput]: ...
    def __init__(
        self,
        *,
        group_id: str | None = ...,
        group_index: int | None = ...,
        candidates: Iterable[ScoreCandidateOutput] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["group_index"]) -> bool: ...

class ScoreCandidateOutput(Message):
    candidate_id: str
    candidate_index: int
    @property
    def scores(self) -> DenseFloatTensor: ...
    @property
    def token_ids(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        candidate_id: str | None = ...,
        candidate_index: int | None = ...,
        scores: DenseFloatTensor | None = ...,
        token_ids: Iterable[int] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["candidate_index", "scores"]) -> bool: ...

class TaskCapabilities(Message):
    @property
    def embed(self) -> EmbedCapabilities: ...
    @property
    def classify(self) -> ClassifyCapabilities: ...
    @property
    def score(self) -> ScoreCapabilities: ...
    def __init__(
        self,
        *,
        embed: EmbedCapabilities | None = ...,
        classify: ClassifyCapabilities | None = ...,
        score: ScoreCapabilities | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["embed", "classify", "score"]) -> bool: ...

class EmbedCapabilities(Message):
    supported: bool
    @property
    def input_types(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def granularities(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def encodings(self) -> RepeatedScalarFieldContainer[int]: ...
    dimension: int
    max_batch_size: int
    max_output_values_per_item: int
    supports_priority: bool
    supports_lora: bool
    supports_normalization: bool
    supports_dimension_override: bool
    @property
    def modalities(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        supported: bool | None = ...,
        input_types: Iterable[int] | None = ...,
        granularities: Iterable[int] | None = ...,
        encodings: Iterable[int] | None = ...,
        dimension: int | None = ...,
        max_batch_size: int | None = ...,
        max_output_values_per_item: int | None = ...,
        supports_priority: bool | None = ...,
        supports_lora: bool | None = ...,
        supports_normalization: bool | None = ...,
        supports_dimension_override: bool | None = ...,
        modalities: Iterable[int] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["supported", "dimension", "max_batch_size", "max_output_values_per_item", "supports_priority", "supports_lora", "supports_normalization", "supports_dimension_override"]) -> bool: ...

class ClassifyCapabilities(Message):
    supported: bool
    @property
    def input_types(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def granularities(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def semantics(self) -> RepeatedScalarFieldContainer[int]: ...
    max_batch_size: int
    max_output_values_per_item: int
    supports_priority: bool
    supports_lora: bool
    @property
    def modalities(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        supported: bool | None = ...,
        input_types: Iterable[int] | None = ...,
        granularities: Iterable[int] | None = ...,
        semantics: Iterable[int] | None = ...,
        max_batch_size: int | None = ...,
        max_output_values_per_item: int | None = ...,
        supports_priority: bool | None = ...,
        supports_lora: bool | None = ...,
        modalities: Iterable[int] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["supported", "max_batch_size", "max_output_values_per_item", "supports_priority", "supports_lora"]) -> bool: ...

class ScoreCapabilities(Message):
    supported: bool
    @property
    def input_types(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def granularities(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def semantics(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def normalizations(self) -> RepeatedScalarFieldContainer[int]: ...
    supports_label_token_scoring: bool
    supports_instruction: bool
    max_groups: int
    max_candidates_per_group: int
    max_output_values_per_candidate: int
    supports_priority: bool
    supports_lora: bool
    higher_is_better: bool
    @property
    def modalities(self) -> RepeatedScalarFieldContainer[int]: ...
    max_label_token_ids: int
    def __init__(
        self,
        *,
        supported: bool | None = ...,
        input_types: Iterable[int] | None = ...,
        granularities: Iterable[int] | None = ...,
        semantics: Iterable[int] | None = ...,
        normalizations: Iterable[int] | None = ...,
        supports_label_token_scoring: bool | None = ...,
        supports_instruction: bool | None = ...,
        max_groups: int | None = ...,
        max_candidates_per_group: int | None = ...,
        max_output_values_per_candidate: int | None = ...,
        supports_priority: bool | None = ...,
        supports_lora: bool | None = ...,
        higher_is_better: bool | None = ...,
        modalities: Iterable[int] | None = ...,
        max_label_token_ids: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["supported", "supports_label_token_scoring", "supports_instruction", "max_groups", "max_candidates_per_group", "max_output_values_per_candidate", "supports_priority", "supports_lora", "higher_is_better", "max_label_token_ids"]) -> bool: ...

CapabilityChangeNotice: EnumTypeWrapper
CAPABILITY_CHANGE_NOTICE_UNSPECIFIED: Final = 0
CAPABILITY_CHANGE_NOTICE_RECONNECT: Final = 1
CAPABILITY_CHANGE_NOTICE_LOAD_STREAM: Final = 2
CAPABILITY_CHANGE_NOTICE_RUNTIME_EVENT: Final = 3

AbortTargetKind: EnumTypeWrapper
ABORT_TARGET_KIND_UNSPECIFIED: Final = 0
ABORT_TARGET_KIND_REQUEST_ID: Final = 1
ABORT_TARGET_KIND_KV_SESSION: Final = 2
ABORT_TARGET_KIND_ALL_REQUESTS: Final = 3

HealthProbeKind: EnumTypeWrapper
HEALTH_PROBE_KIND_UNSPECIFIED: Final = 0
HEALTH_PROBE_KIND_PASSIVE: Final = 1
HEALTH_PROBE_KIND_INFERENCE: Final = 2

KvHandoffRole: EnumTypeWrapper
KV_HANDOFF_ROLE_UNSPECIFIED: Final = 0
KV_HANDOFF_ROLE_PREFILL: Final = 1
KV_HANDOFF_ROLE_DECODE: Final = 2

class ServiceProfile(Message):
    name: str
    major: int
    minor: int
    @property
    def models(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def roles(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def services(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        name: str | None = ...,
        major: int | None = ...,
        minor: int | None = ...,
        models: Iterable[str] | None = ...,
        roles: Iterable[int] | None = ...,
        services: Iterable[str] | None = ...,
    ) -> None: ...

class Capabilities(Message):
    @property
    def profiles(self) -> RepeatedCompositeFieldContainer[ServiceProfile]: ...
    instance_id: str
    model: str
    configuration_epoch: int
    capability_revision: int
    @property
    def change_notices(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def incompatible(self) -> RepeatedCompositeFieldContainer[FeatureCombination]: ...
    @property
    def prerequisites(self) -> RepeatedCompositeFieldContainer[ProfilePrerequisite]: ...
    @property
    def core(self) -> CoreCapabilities: ...
    @property
    def generation(self) -> GenerationCapabilities: ...
    @property
    def observability(self) -> ObservabilityCapabilities: ...
    @property
    def kv(self) -> KvCapabilities: ...
    @property
    def adapters(self) -> AdapterCapabilities: ...
    @property
    def admin(self) -> AdminCapabilities: ...
    @property
    def tasks(self) -> TaskCapabilities: ...
    @property
    def encoder(self) -> EncoderCapabilities: ...
    @property
    def sessions(self) -> SessionCapabilities: ...
    @property
    def orchestration(self) -> OrchestrationCapabilities: ...
    def __init__(
        self,
        *,
        profiles: Iterable[ServiceProfile] | None = ...,
        instance_id: str | None = ...,
        model: str | None = ...,
        configuration_epoch: int | None = ...,
        capability_revision: int | None = ...,
        change_notices: Iterable[int] | None = ...,
        incompatible: Iterable[FeatureCombination] | None = ...,
        prerequisites: Iterable[ProfilePrerequisite] | None = ...,
        core: CoreCapabilities | None = ...,
        generation: GenerationCapabilities | None = ...,
        observability: ObservabilityCapabilities | None = ...,
        kv: KvCapabilities | None = ...,
        adapters: AdapterCapabilities | None = ...,
        admin: AdminCapabilities | None = ...,
        tasks: TaskCapabilities | None = ...,
        encoder: EncoderCapabilities | None = ...,
        sessions: SessionCapabilities | None = ...,
        orchestration: OrchestrationCapabilities | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["core", "generation", "observability", "kv", "adapters", "admin", "tasks", "encoder", "sessions", "orchestration"]) -> bool: ...

class FeatureCombination(Message):
    @property
    def features(self) -> RepeatedScalarFieldContainer[str]: ...
    message: str
    def __init__(
        self,
        *,
        features: Iterable[str] | None = ...,
        message: str | None = ...,
    ) -> None: ...

class ProfilePrerequisite(Message):
    profile: str
    requires_profile: str
    requires_major: int
    requires_minor: int
    def __init__(
        self,
        *,
        profile: str | None = ...,
        requires_profile: str | None = ...,
        requires_major: int | None = ...,
        requires_minor: int | None = ...,
    ) -> None: ...

class CoreCapabilities(Message):
    max_request_id_bytes: int
    max_request_bytes: int
    max_stop_conditions: int
    max_stop_text_bytes: int
    @property
    def abort_targets(self) -> RepeatedScalarFieldContainer[int]: ...
    finished_request_retention_ms: int
    response_stall_timeout_ms: int
    accepts_zero_max_tokens: bool
    deterministic_seed: bool
    @property
    def health_probes(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        max_request_id_bytes: int | None = ...,
        max_request_bytes: int | None = ...,
        max_stop_conditions: int | None = ...,
        max_stop_text_bytes: int | None = ...,
        abort_targets: Iterable[int] | None = ...,
        finished_request_retention_ms: int | None = ...,
        response_stall_timeout_ms: int | None = ...,
        accepts_zero_max_tokens: bool | None = ...,
        deterministic_seed: bool | None = ...,
        health_probes: Iterable[int] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["max_request_id_bytes", "max_request_bytes", "max_stop_conditions", "max_stop_text_bytes", "finished_request_retention_ms", "response_stall_timeout_ms", "accepts_zero_max_tokens", "deterministic_seed"]) -> bool: ...

class KvCapabilities(Message):
    @property
    def handoff(self) -> KvHandoffCapabilities: ...
    @property
    def events(self) -> KvEventCapabilities: ...
    def __init__(
        self,
        *,
        handoff: KvHandoffCapabilities | None = ...,
        events: KvEventCapabilities | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["handoff", "events"]) -> bool: ...

class KvHandoffCapabilities(Message):
    @property
    def roles(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def transfer_backends(self) -> RepeatedScalarFieldContainer[str]: ...
    session_ttl_ms: int
    max_open_sessions: int
    single_use: bool
    release_by_session: bool
    usage_carries_prefill: bool
    def __init__(
        self,
        *,
        roles: Iterable[int] | None = ...,
        transfer_backends: Iterable[str] | None = ...,
        session_ttl_ms: int | None = ...,
        max_open_sessions: int | None = ...,
        single_use: bool | None = ...,
        release_by_session: bool | None = ...,
        usage_carries_prefill: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["session_ttl_ms", "max_open_sessions", "single_use", "release_by_session", "usage_carries_prefill"]) -> bool: ...

class KvEventCapabilities(Message):
    @property
    def transports(self) -> RepeatedScalarFieldContainer[str]: ...
    supports_snapshot: bool
    supports_replay: bool
    replay_buffer_batches: int
    max_subscribers: int
    @property
    def media(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def hash_encodings(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        transports: Iterable[str] | None = ...,
        supports_snapshot: bool | None = ...,
        supports_replay: bool | None = ...,
        replay_buffer_batches: int | None = ...,
        max_subscribers: int | None = ...,
        media: Iterable[int] | None = ...,
        hash_encodings: Iterable[str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["supports_snapshot", "supports_replay", "replay_buffer_batches", "max_subscribers"]) -> bool: ...

class AdapterCapabilities(Message):
    max_loaded: int
    max_resident: int
    max_rank: int
    @property
    def models(self) -> RepeatedScalarFieldContainer[str]: ...
    unload_while_in_use: bool
    def __init__(
        self,
        *,
        max_loaded: int | None = ...,
        max_resident: int | None = ...,
        max_rank: int | None = ...,
        models: Iterable[str] | None = ...,
        unload_while_in_use: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["max_loaded", "max_resident", "max_rank", "unload_while_in_use"]) -> bool: ...

HealthState: EnumTypeWrapper
HEALTH_STATE_UNSPECIFIED: Final = 0
HEALTH_STATE_STARTING: Final = 1
HEALTH_STATE_READY: Final = 2
HEALTH_STATE_DEGRADED: Final = 3
HEALTH_STATE_NOT_READY: Final = 4

AbortStatus: EnumTypeWrapper
ABORT_STATUS_UNSPECIFIED: Final = 0
ABORT_STATUS_ABORTED: Final = 1
ABORT_STATUS_ALREADY_FINISHED: Final = 2

class HealthRequest(Message):
    include_inference_probe: bool
    model: str
    role: int
    def __init__(
        self,
        *,
        include_inference_probe: bool | None = ...,
        model: str | None = ...,
        role: int | None = ...,
    ) -> None: ...

class HealthResponse(Message):
    state: int
    @property
    def checks(self) -> RepeatedCompositeFieldContainer[HealthCheck]: ...
    def __init__(
        self,
        *,
        state: int | None = ...,
        checks: Iterable[HealthCheck] | None = ...,
    ) -> None: ...

class HealthCheck(Message):
    name: str
    state: int
    message: str
    def __init__(
        self,
        *,
        name: str | None = ...,
        state: int | None = ...,
        message: str | None = ...,
    ) -> None: ...

class AbortRequest(Message):
    request_id: str
    @property
    def kv_session(self) -> KvSessionRef: ...
    @property
    def all_requests(self) -> AllRequests: ...
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        kv_session: KvSessionRef | None = ...,
        all_requests: AllRequests | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["request_id", "kv_session", "all_requests", "target"]) -> bool: ...
    def WhichOneof(self, oneof_group: Literal["target"]) -> Literal["request_id", "kv_session", "all_requests"] | None: ...

class AllRequests(Message):
    def __init__(self) -> None: ...

class AbortResponse(Message):
    status: int
    message: str
    def __init__(
        self,
        *,
        status: int | None = ...,
        message: str | None = ...,
    ) -> None: ...

class GetEngineInfoRequest(Message):
    def __init__(self) -> None: ...

class EngineInfo(Message):
    engine_name: str
    engine_version: str
    engine_role: int
    instance_id: str
    @property
    def supported_models(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def parallelism(self) -> ParallelismInfo: ...
    @property
    def kv_connector(self) -> KvConnectorInfo: ...
    schema_revision: int
    minimum_client_revision: int
    schema_release: str
    @property
    def capacity(self) -> DeploymentCapacity: ...
    @property
    def extra(self) -> Struct: ...
    configuration_epoch: int
    capability_revision: int
    started_at_unix_nanos: int
    @property
    def service_endpoints(self) -> RepeatedCompositeFieldContainer[ServiceEndpoint]: ...
    def __init__(
        self,
        *,
        engine_name: str | None = ...,
        engine_version: str | None = ...,
        engine_role: int | None = ...,
        instance_id: str | None = ...,
        supported_models: Iterable[str] | None = ...,
        parallelism: ParallelismInfo | None = ...,
        kv_connector: KvConnectorInfo | None = ...,
        schema_revision: int | None = ...,
        minimum_client_revision: int | None = ...,
        schema_release: str | None = ...,
        capacity: DeploymentCapacity | None = ...,
        extra: Struct | Mapping[str, object] | None = ...,
        configuration_epoch: int | None = ...,
        capability_revision: int | None = ...,
        started_at_unix_nanos: int | None = ...,
        service_endpoints: Iterable[ServiceEndpoint] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["parallelism", "kv_connector", "capacity", "extra", "started_at_unix_nanos"]) -> bool: ...

class ServiceEndpoint(Message):
    service: str
    host: str
    port: int
    tls: bool
    def __init__(
        self,
        *,
        service: str | None = ...,
        host: str | None = ...,
        port: int | None = ...,
        tls: bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["tls"]) -> bool: ...

class GetCapabilitiesRequest(Message):
    model: str
    def __init__(
        self,
        *,
        model: str | None = ...,
    ) -> None: ...

KvReleaseStatus: EnumTypeWrapper
KV_RELEASE_STATUS_UNSPECIFIED: Final = 0
KV_RELEASE_STATUS_RELEASED: Final = 1
KV_RELEASE_STATUS_ALREADY_RELEASED: Final = 2
KV_RELEASE_STATUS_IN_USE: Final = 3

class ReleaseKvSessionRequest(Message):
    session_id: str
    def __init__(
        self,
        *,
        session_id: str | None = ...,
    ) -> None: ...

class ReleaseKvSessionResponse(Message):
    status: int
    def __init__(
        self,
        *,
        status: int | None = ...,
    ) -> None: ...

FaultKind: EnumTypeWrapper
FAULT_KIND_UNSPECIFIED: Final = 0
FAULT_KIND_REQUEST_FAILS: Final = 1
FAULT_KIND_WORKER_FAILS: Final = 2
FAULT_KIND_STAGE_DIES: Final = 3
FAULT_KIND_ENGINE_WEDGED: Final = 4
FAULT_KIND_KV_TRANSFER_FAILS: Final = 5
FAULT_KIND_ABORT_REFUSED: Final = 6
FAULT_KIND_STAGE_ABORT_REFUSED: Final = 7
FAULT_KIND_OUT_OF_BLOCKS: Final = 8
FAULT_KIND_EVENT_SOURCE_FAILS: Final = 9

class InjectFaultRequest(Message):
    kind: int
    request_id: str
    stage_id: str
    after_tokens: int
    duration_ms: int
    def __init__(
        self,
        *,
        kind: int | None = ...,
        request_id: str | None = ...,
        stage_id: str | None = ...,
        after_tokens: int | None = ...,
        duration_ms: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["request_id", "stage_id", "after_tokens", "duration_ms"]) -> bool: ...

class InjectFaultResponse(Message):
    fault_id: str
    def __init__(
        self,
        *,
        fault_id: str | None = ...,
    ) -> None: ...

class ClearFaultsRequest(Message):
    def __init__(self) -> None: ...

class ClearFaultsResponse(Message):
    def __init__(self) -> None: ...

class ReconfigureRequest(Message):
    supports_priority: bool
    max_num_sequences: int
    def __init__(
        self,
        *,
        supports_priority: bool | None = ...,
        max_num_sequences: int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: Literal["supports_priority", "max_num_sequences"]) -> bool: ...

class ReconfigureResponse(Message):
    configuration_epoch: int
    capability_revision: int
    def __init__(
        self,
        *,
        configuration_epoch: int | None = ...,
        capability_revision: int | None = ...,
    ) -> None: ...
