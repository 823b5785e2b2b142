"""What the servicers share: deployment, engine, id table, and whether new work is taken."""

from dataclasses import dataclass

from reference_engine.engine.engine import Engine
from reference_engine.model.tokenizer import Tokenizer
from reference_engine.server.deployment import Deployment
from reference_engine.server.rejection import DUPLICATE, OVERLOADED, UNAVAILABLE, Rejection
from reference_engine.server.request_table import RequestTable


@dataclass(slots=True)
class Frontend:
    """One per process; used on the event loop's thread only."""

    deployment: Deployment
    engine: Engine
    table: RequestTable
    tokenizer: Tokenizer
    draining: bool = False

    @property
    def serving(self) -> bool:
        """Whether new requests are computed."""
        return not self.draining and self.engine.alive

    def admission_problem(self, request_id: str) -> Rejection | None:
        """Why a valid request cannot start now, if so."""
        if not self.serving:
            return UNAVAILABLE
        if request_id in self.table:
            return DUPLICATE
        if not self.engine.has_room:
            return OVERLOADED
        return None
