"""What every check body may do, whatever it calls: wait for conditions and say what it found."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from conformance.checks.violation import Call, NotJudged, Tolerated, Violation
from conformance.laws.law import Finding, Ruling

# Between two looks at a condition: at first about as long as a call takes, since most conditions
# hold soon, then short against any limit (seconds) and long against a call (ms).
FIRST_POLL_SECONDS = 0.004
POLL_SECONDS = 0.05

CallT = TypeVar("CallT", bound=Call)
DeclaredT = TypeVar("DeclaredT")


@dataclass(slots=True)
class Spending:
    """What a check has cost so far, and the most it may cost."""

    max_requests: int
    max_tokens: int
    requests: int = 0
    tokens: int = 0

    @property
    def exhausted(self) -> bool:
        """Whether one of the limits is reached."""
        return self.requests >= self.max_requests or self.tokens >= self.max_tokens


@dataclass(slots=True)
class CaseLog(Generic[CallT]):
    """The calls of one case, and what each law said about them."""

    transcripts: list[CallT] = field(default_factory=list)
    rulings: dict[str, list[tuple[Ruling, CallT]]] = field(default_factory=dict)


class Interrupted(BaseException):
    """The run was stopped; no check may go on. Not an Exception: nothing may swallow it."""


class BaseProbe(Generic[CallT, DeclaredT]):
    """The part of a probe that does not depend on how the target is called.

    declared: what is known of the target. methods: names of all calls that the check has made.
    stop: set when the run ends early; everything then raises Interrupted.
    """

    def __init__(
        self, requirement: str, declared: DeclaredT, spending: Spending, stop: threading.Event
    ) -> None:
        self.requirement = requirement
        self.declared = declared
        self.spending = spending
        self.log: CaseLog[CallT] = CaseLog()
        self.methods: set[str] = set()
        self._stop = stop

    def new_case(self) -> None:
        """Forget the calls of the last case."""
        self.log = CaseLog()

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Ask `condition` until it holds or `seconds` have passed; whether it held."""
        end = time.monotonic() + seconds
        pause = FIRST_POLL_SECONDS
        while not condition():
            left = end - time.monotonic()
            if left <= 0:
                return False
            if self._stop.wait(min(pause, left)):
                raise Interrupted
            pause = min(2 * pause, POLL_SECONDS)
        return True

    # Findings

    def fail(
        self,
        expected: str,
        actual: str,
        transcript: CallT | None = None,
        event: int | None = None,
    ) -> NoReturn:
        """The requirement is broken. Neither text may hold prompts or outputs."""
        raise Violation(self.requirement, expected, actual, transcript, event)

    def tolerate(self, expected: str, actual: str, transcript: CallT | None = None) -> NoReturn:
        """The requirement is broken in a way that its row only warns about."""
        raise Tolerated(self.requirement, expected, actual, transcript)

    def skip(self, why: str, *, too_large: bool = False) -> NoReturn:
        """This case says nothing about the requirement. too_large: because a limit that it would
        have to go beyond is unreported, or too large to be reached at a reasonable cost.
        """
        raise NotJudged(why, too_large=too_large)

    def settle(self) -> None:
        """For a check that is a law: take over what the law said about the calls of this case."""
        rulings = self.log.rulings.get(self.requirement, [])
        for ruling, transcript in rulings:
            if isinstance(ruling, Finding):
                self.fail(ruling.expected, ruling.actual, transcript, ruling.event)
        if not any(ruling is True for ruling, _ in rulings):
            self.skip("no call of this case met the precondition of the rule")


# For code that runs bodies, whatever they call.
AnyProbe: TypeAlias = BaseProbe[Any, Any]
