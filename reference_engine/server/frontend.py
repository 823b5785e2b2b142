"""What the servicers share: deployment, engine, id table, and whether new work is taken."""

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from reference_engine.lora.adapter import Adapter
from reference_engine.lora.registry import AdapterRegistry
from reference_engine.model.tokenizer import Tokenizer
from reference_engine.ranks.group import RankGroup
from reference_engine.server.deployment import Deployment
from reference_engine.server.guide import GuideCompiler
from reference_engine.server.rejection import DUPLICATE, OVERLOADED, UNAVAILABLE, Rejection
from reference_engine.server.request_table import RequestTable


@dataclass(slots=True)
class Frontend:
    """One per process; used on the event loop's thread only."""

    deployment: Deployment
    engine: RankGroup
    table: RequestTable
    tokenizer: Tokenizer
    guides: GuideCompiler
    adapters: AdapterRegistry | None = None
    draining: bool = False

    @property
    def serving(self) -> bool:
        """Whether new requests are computed."""
        return not self.draining and self.engine.healthy

    def adapter(self, name: str) -> AbstractAsyncContextManager[Adapter | None]:
        """Hold the adapter that a valid request names, if it names one; see AdapterRegistry.use."""
        if self.adapters is None or not name:
            return nullcontext()
        return self.adapters.use(name)

    def admission_problem(self, request_id: str, rank: int | None) -> Rejection | None:
        """Why a valid request cannot start now, if so: on this rank, or on any."""
        if not self.serving:
            return UNAVAILABLE
        if request_id in self.table:
            return DUPLICATE
        if not self.engine.has_room(rank):
            return OVERLOADED
        return None
