"""Puts a worker under test into states and reads its counts, and always takes it out again.

The target's file says where (`stage_path`); the request and the answer are described in
docs/reference/workers.md. Without it the check skips.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from conformance.checks.http.probe import HttpProbe
from conformance.checks.worker.calls import terms_of
from conformance.http.client import HttpConnection
from conformance.http.exchange import Request


@dataclass(frozen=True, slots=True)
class Counts:
    """asked: requests that the worker has seen. held: those that it is holding now. The rest is
    about the last one seen: its bytes, and the milliseconds that were left of its budget.
    """

    asked: int
    held: int
    sha256: str
    remaining_ms: int | None


class Staging:
    """The stage of one check."""

    def __init__(self, probe: HttpProbe) -> None:
        self._probe = probe
        self._path = terms_of(probe).stage_path

    def set(self, **stage: Any) -> Counts:
        """Replace the stage. Skips the case when the target refuses this one."""
        answer = self._call("POST", json.dumps(stage).encode("ascii"))
        if answer is None:
            self._probe.skip(f"the target has no stage {', '.join(sorted(stage))}")
        return answer

    def counts(self) -> Counts:
        """What has been counted. Skips the case when the target does not tell."""
        answer = self._call("GET", b"")
        if answer is None:
            self._probe.skip("the target does not tell its counts")
        return answer

    def holds(self, number: int) -> bool:
        """Whether the worker holds so many requests before the limit for a local answer."""
        seconds = self._probe.seconds(10.0)
        return self._probe.wait_until(lambda: self.counts().held == number, seconds)

    def reset(self) -> None:
        """No stage, and nothing held."""
        self._call("POST", b'{"release":true}')

    def _call(self, method: str, body: bytes) -> Counts | None:
        # A connection of its own: it is used on the way out of a run that is being stopped, too.
        own = self._probe.connection
        with HttpConnection(own.target, own.limits) as connection:
            seen = connection.finish(connection.start(Request(method, self._path, (), body)))
        found = seen.json if seen.ok else None
        if not isinstance(found, dict):
            return None
        last = found.get("last")
        last = last if isinstance(last, dict) else {}
        return Counts(
            int(found.get("asked", 0)),
            int(found.get("held", 0)),
            str(last.get("sha256", "")),
            last.get("remaining_ms"),
        )


@contextmanager
def staged(probe: HttpProbe, **stage: Any) -> Iterator[Staging]:
    """The worker is in this state while the block runs."""
    if not terms_of(probe).stage_path:
        probe.skip("the target's file names no stage_path, so its states cannot be shown")
    staging = Staging(probe)
    try:
        staging.set(**stage)
        yield staging
    finally:
        staging.reset()


def asked(probe: HttpProbe) -> int | None:
    """How many requests the worker has seen; None from a target that does not tell."""
    return Staging(probe).counts().asked if terms_of(probe).stage_path else None
