"""What the command line says about a serving process, as it was typed."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """One field per option of `oe-engine serve`; None means the default for the model."""

    model: str
    listen: str
    control_listen: str | None
    advertise_host: str | None
    aliases: tuple[str, ...]
    max_running: int
    max_waiting: int
    kv_blocks: int | None
    block_size: int
    threads: int | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_client_ca: Path | None
    grace: float
    ready_file: Path | None
    device: str = "auto"
    dtype: str = "auto"
    stall_timeout_ms: int = 30_000
    probe_timeout_ms: int = 10_000
    max_watch_streams: int = 64
    data_parallel_size: int = 1
    loras: tuple[str, ...] = ()
    max_loras: int = 8
    max_resident_loras: int | None = None
    max_lora_rank: int = 64
    lora_root: Path | None = None
    admin: bool = True
    paused_admission: str = "reject"
    testing: bool = False
