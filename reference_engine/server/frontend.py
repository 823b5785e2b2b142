"""What the servicers share: deployment, engine, id table, and whether new work is taken."""

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

from oe_wire import v1
from reference_engine.lora.adapter import Adapter
from reference_engine.lora.registry import AdapterRegistry
from reference_engine.model.tokenizer import Tokenizer
from reference_engine.ranks.group import RankGroup
from reference_engine.server.deployment import Deployment
from reference_engine.server.faults import Faults
from reference_engine.server.guide import GuideCompiler
from reference_engine.server.pause import Pause
from reference_engine.server.rejection import (
    DUPLICATE,
    NO_BLOCKS,
    OVERLOADED,
    PAUSED,
    UNAVAILABLE,
    Rejection,
)
from reference_engine.server.request_table import RequestTable
from reference_engine.server.revisions import Revisions


@dataclass(slots=True)
class Frontend:
    """One per process; used on the event loop's thread only.

    probe_seconds: after which an inference probe gives up on an engine that computes nothing.
    """

    revisions: Revisions
    engine: RankGroup
    table: RequestTable
    tokenizer: Tokenizer
    guides: GuideCompiler
    adapters: AdapterRegistry | None = None
    draining: bool = False
    faults: Faults = field(default_factory=Faults)
    pause: Pause = field(default_factory=Pause)
    probe_seconds: float = 10.0

    @property
    def deployment(self) -> Deployment:
        """What is served, as of now."""
        return self.revisions.current

    @property
    def serving(self) -> bool:
        """Whether new requests are computed."""
        return not self.draining and not self.pause.closed and self.engine.healthy

    def adapter(self, name: str) -> AbstractAsyncContextManager[Adapter | None]:
        """Hold the adapter that a valid request names, if it names one; see AdapterRegistry.use."""
        if self.adapters is None or not name:
            return nullcontext()
        return self.adapters.use(name)

    def admission_problem(self, request_id: str, rank: int | None) -> Rejection | None:
        """Why a valid request cannot start now, if so: on this rank, or on any."""
        if self.draining or not self.engine.healthy:
            return UNAVAILABLE
        if self.pause.refuses_new:
            return PAUSED
        if request_id in self.table:
            return DUPLICATE
        if not self.engine.has_room(rank):
            return OVERLOADED
        if self.faults.look(v1.FAULT_KIND_OUT_OF_BLOCKS, request_id) is not None:
            return NO_BLOCKS
        return None
