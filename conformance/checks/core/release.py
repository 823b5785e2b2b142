"""Whether what a request held is given back: the load returns to what it was, its id is free.

The rows give 5 s for it. Load is read where the engine tells it; ids can be tried on any engine.
"""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from conformance.checks import steering
from conformance.checks.probe import Probe
from conformance.laws.law import GENERATE
from conformance.strategies.simple import simple_request
from conformance.wire.transcript import Transcript

# For this long a request that should have ended may run on before the next case begins.
REST_SECONDS = 10.0
SECONDS = steering.RELEASE_SECONDS


def running(probe: Probe) -> int | None:
    """running_requests now; None when the engine does not tell."""
    info = steering.load(probe)
    return info.running_requests if info is not None and info.HasField("running_requests") else None


def at_rest(probe: Probe) -> int | None:
    """running_requests once what earlier cases left has gone; None when it is not told.

    An engine that never gets to zero (a counter that leaks, other clients) gives what is left.
    """
    left = running(probe)
    if left:
        probe.wait_until(lambda: not running(probe), probe.pace.required(REST_SECONDS))
        left = running(probe)
    return left


def released(probe: Probe, before: int | None, after: str, shown: Transcript | None = None) -> None:
    """Fail when running_requests does not return to `before` in time. Nothing is judged when the
    engine does not tell it. after: what should have ended the work.
    """
    if before is None or steering.idle(probe, before):
        return
    now = running(probe)
    probe.fail(
        f"running_requests back to {before} within {SECONDS:g} s of {after}", f"{now}", shown
    )


def ids_free(probe: Probe, ids: Sequence[str], after: str) -> None:
    """Fail when one of these ids is still in use in time. A full engine says nothing."""
    waiting = list(ids)
    last: list[Transcript] = []

    def all_free() -> bool:
        while waiting:
            request = simple_request(probe.declared)
            request.request_id = waiting[-1]
            call = probe.call(GENERATE, request)
            last[:] = [call]
            if call.rejected and call.ending.code is grpc.StatusCode.ALREADY_EXISTS:
                return False
            waiting.pop()
        return True

    if not probe.wait_until(all_free, probe.pace.required(SECONDS) + probe.pace.unary):
        probe.fail(f"the id free within {SECONDS:g} s of {after}", "ALREADY_EXISTS", last[0])
