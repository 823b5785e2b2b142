"""What the command line says about a worker process, as it was typed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """One field per option of `oe-engine worker`."""

    model: str
    listen: str
    work_path: str
    health_path: str
    body_limit: int
    budget: float
    budget_header: str
    queue: int
    forward: str | None
    response_limit: int
    threads: int | None
    testing: bool
    grace: float
    ready_file: Path | None
