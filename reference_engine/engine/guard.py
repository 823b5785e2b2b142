"""A step that throws ends its requests and not the engine; many in a row are noticed."""

import logging
from collections.abc import Callable

from reference_engine.engine.core import Emitted, EngineCore

log = logging.getLogger(__name__)

FAULT = "the engine failed while it computed this request"
ENDED = "the engine core has ended"
BROKEN = "the engine failed while it carried out the operation"
# One bad batch is bad luck. A cause that outlives three, such as a broken device, stays.
MOST_FAILURES = 3


class Guard:
    """Runs the core for the one thread that may call it."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._failures = 0

    @property
    def failing(self) -> bool:
        """Whether the latest steps have all thrown. Any thread may ask."""
        return self._failures >= MOST_FAILURES

    def step(self) -> list[Emitted]:
        """Run a step; if it throws, every open request ends with an error instead."""
        try:
            events = self._core.step()
        except Exception:
            self._failures += 1
            log.exception("a step of the engine failed; its open requests end with an error")
            return self._core.fail_all(FAULT)
        self._failures = 0
        return events

    def apply(self, command: Callable[[], list[Emitted]]) -> list[Emitted]:
        """Run a command between two steps, with the same care."""
        try:
            return command()
        except Exception:
            log.exception("a command failed; the open requests end with an error")
            return self._core.fail_all(FAULT)
