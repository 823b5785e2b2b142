"""What a check body raises.

    Outcome
    ├── Violation      the requirement is broken
    │   └── Tolerated  broken in a way that its row only warns about (legacy engines)
    └── NotJudged      the precondition did not hold in this case

None of these is an error of the suite.
"""

from __future__ import annotations

from typing import TypeAlias

from conformance.http.exchange import Exchange
from conformance.wire.transcript import Transcript

# One call to a target, over gRPC or over HTTP.
Call: TypeAlias = Transcript | Exchange


class Outcome(Exception):
    """How one case ended, other than by the requirement holding."""


class Violation(Outcome):
    """A broken requirement: what it demands, what was seen, and the call that shows it.

    event: index of the offending response message, when there is one.
    """

    def __init__(
        self,
        requirement: str,
        expected: str,
        actual: str,
        transcript: Call | None = None,
        event: int | None = None,
    ) -> None:
        super().__init__(f"{requirement}: expected {expected}; got {actual}")
        self.requirement = requirement
        self.expected = expected
        self.actual = actual
        self.transcript = transcript
        self.event = event


class Tolerated(Violation):
    """A deviation that the requirement's row tolerates: it warns and never fails."""


class NotJudged(Outcome):
    """Nothing was judged; `str(error)` says which precondition did not hold.

    too_large: the case would have cost too much, or its limit is not reported.
    """

    def __init__(self, why: str, *, too_large: bool = False) -> None:
        super().__init__(why)
        self.too_large = too_large
