"""The faults that a test run has armed. Whoever can fail asks here whether it shall."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One armed fault; `kind` is a value of FaultKind.

    request_id: the request to hit, None for the next that fits. after_tokens: tokens of it that
    come first. duration_ms: how long a state lasts, None until it is cleared.
    """

    fault_id: str
    kind: int
    request_id: str | None = None
    after_tokens: int = 0
    duration_ms: int | None = None

    def hits(self, kind: int, request_id: str | None) -> bool:
        """Whether it is of this kind and meant for this request, or for any."""
        return self.kind == kind and self.request_id in (None, request_id)


class Faults:
    """Empty unless the engine serves OpenEngineTesting. Used on the event loop's thread only."""

    def __init__(self) -> None:
        self._armed: list[Fault] = []
        self._numbers = itertools.count(1)
        self._subscribers: list[Callable[[Fault], None]] = []

    def arm(
        self,
        kind: int,
        request_id: str | None = None,
        after_tokens: int = 0,
        duration_ms: int | None = None,
    ) -> Fault:
        """Add a fault and tell the subscribers of it."""
        fault_id = f"fault-{next(self._numbers)}"
        fault = Fault(fault_id, kind, request_id, after_tokens, duration_ms)
        self._armed.append(fault)
        for subscriber in tuple(self._subscribers):
            subscriber(fault)
        return fault

    def look(self, kind: int, request_id: str | None = None) -> Fault | None:
        """The oldest fault that hits, which stays armed."""
        return next((fault for fault in self._armed if fault.hits(kind, request_id)), None)

    def take(self, kind: int, request_id: str | None = None) -> Fault | None:
        """The oldest fault that hits, disarmed: the caller fails once, now."""
        fault = self.look(kind, request_id)
        if fault is not None:
            self._armed.remove(fault)
        return fault

    def disarm(self, fault: Fault) -> None:
        """Forget one fault; nothing happens if it is not armed."""
        if fault in self._armed:
            self._armed.remove(fault)

    def clear(self) -> None:
        """Forget all of them."""
        self._armed.clear()

    def subscribe(self, subscriber: Callable[[Fault], None]) -> Callable[[], None]:
        """Have each new fault told; the function returned ends that."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)
