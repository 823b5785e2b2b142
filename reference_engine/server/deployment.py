"""What this engine serves, in one frozen place: advertised from here and enforced from here."""

from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from reference_engine.lora.limits import LoraLimits
from reference_engine.server.load_limits import LoadLimits


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener as clients reach it; host is routable, never a wildcard."""

    host: str
    port: int
    tls: bool


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The model under its names, with the sizes that bound a request.

    window: tokens of prompt and output together. vocab_size: token ids are below it.
    """

    name: str
    aliases: tuple[str, ...]
    vocab_size: int
    window: int

    @property
    def names(self) -> frozenset[str]:
        """Every name that a request may use."""
        return frozenset((self.name, *self.aliases))


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of a request, all advertised. Bytes are of UTF-8, or of the encoded message."""

    max_request_id_bytes: int = 256
    max_request_bytes: int = 4 * 1024 * 1024
    max_stop_conditions: int = 64
    max_stop_text_bytes: int = 1024
    max_num_sequences: int = 8
    supports_priority: bool = True
    max_top_n: int = 20
    prompt_candidates_all: bool = True
    finished_retention_ms: int = 60_000
    stall_timeout_ms: int = 30_000
    guided_kinds: tuple[str, ...] = ()


class PausedAdmission(Enum):
    """What happens to new requests during a pause: refused, or accepted and run afterwards."""

    REJECT = "reject"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class AdminLimits:
    """What administration offers besides what every engine with the profile does."""

    paused_admission: PausedAdmission = PausedAdmission.REJECT


@dataclass(frozen=True, slots=True)
class Deployment:
    """Everything that discovery tells. Capacities are those of all ranks together.

    admin: None when the profile is switched off. testing: whether faults may be injected.
    """

    instance_id: str
    version: str
    started_at_unix_nanos: int
    model: ServedModel
    limits: RequestLimits
    kv_block_size: int
    total_kv_blocks: int
    max_running: int
    max_batched_tokens: int
    data_parallel_size: int = 1
    load: LoadLimits = field(default_factory=partial(LoadLimits.of_streams, 64))
    lora: LoraLimits | None = None
    admin: AdminLimits | None = None
    testing: bool = False
    configuration_epoch: int = 1
    capability_revision: int = 1
    data_endpoint: Endpoint | None = None
    control_endpoint: Endpoint | None = None
