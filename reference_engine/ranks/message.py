"""What server and rank process say to each other, as plain data.

Commands go one by one; what a step did comes back in one message, because every message costs a
system call and a wake-up on both sides.
"""

from dataclasses import dataclass

from reference_engine.engine.load import LoadSnapshot
from reference_engine.engine.operation import Operation
from reference_engine.engine.output import Event
from reference_engine.engine.request import Request
from reference_engine.lora.low_rank import Arrays


@dataclass(frozen=True, slots=True)
class Add:
    """Queue a request; it goes by its number from here on."""

    number: int
    request: Request
    fail_after: int | None = None


@dataclass(frozen=True, slots=True)
class FailAfter:
    """Let a request fail after so many tokens, or not any more; for tests of that."""

    number: int
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Operate:
    """Do what an administrator asks for. `answer`: how the sender finds the answer. `fault`: what
    to fail with, in a test of that.
    """

    operation: Operation
    answer: int
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Wedge:
    """Do nothing for so many seconds, or until Unwedge; for tests of that."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Unwedge:
    """Go on."""


@dataclass(frozen=True, slots=True)
class Abort:
    """End a request as CANCELLED. `answer`: how the sender finds the answer, None for no answer."""

    number: int
    answer: int | None = None


@dataclass(frozen=True, slots=True)
class SetAside:
    """Set a request aside until its reader has caught up, or take it up again."""

    number: int
    aside: bool


@dataclass(frozen=True, slots=True)
class PutAdapter:
    """Add an adapter to memory."""

    key: str
    arrays: Arrays


@dataclass(frozen=True, slots=True)
class DropAdapter:
    """Forget an adapter."""

    key: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End the process; requests still open end as CANCELLED."""


Command = (
    Add | Abort | FailAfter | Operate | SetAside | PutAdapter | DropAdapter | Wedge | Unwedge | Stop
)


@dataclass(frozen=True, slots=True)
class Ready:
    """The model is loaded, and the load is this."""

    load: LoadSnapshot


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The rank cannot start; `reason` says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """What a step and the commands before it did.

    events: request number and event, in order. answers: of aborts, whether they ended something.
    failing: whether the latest steps have all thrown. outcomes: of operations, why they failed.
    """

    events: tuple[tuple[int, Event], ...]
    answers: tuple[tuple[int, bool], ...]
    load: LoadSnapshot
    failing: bool
    outcomes: tuple[tuple[int, str | None], ...] = ()


Report = Ready | NotStarted | Progress
