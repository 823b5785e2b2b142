"""A call whose deadline passes while it is served (GEN-036)."""

from __future__ import annotations

from collections.abc import Iterable

import grpc

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.probe import Probe, describe
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.strategies import simple_request
from conformance.strategies.simple import long_request
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript

DEADLINE_SECONDS = 0.2


def _long(declared: Declared) -> Iterable[Case]:
    return [Case(long_request(declared))]


@check(
    "OE-CORE-GEN-036",
    advice="Watch the call's own deadline (or its cancellation, which is how most libraries report "
    "it) and abort the request in the scheduler; a stream that nobody reads must not go on.",
    table=_long,
)
def deadline_honoured(probe: Probe, case: Case) -> None:
    """When the deadline passes the call ends, and the engine does not go on with the work.

    That it ends within 2 s the client's own library sees to; what the engine does shows in its
    load and in the id.
    """
    if not steering.idle(probe):
        probe.skip("the engine was busy before")
    request = probe.prepared(case)
    deadline = DEADLINE_SECONDS * probe.pace.slow_factor
    call = probe.call(GENERATE, request, deadline=deadline)
    if call.rejected and call.ending.code is not grpc.StatusCode.DEADLINE_EXCEEDED:
        probe.skip(f"the request was refused: {describe(call)}")
    if call.ending.ok and call.ending.seconds < deadline:
        probe.skip("the request was done before its deadline")
    if call.ending.code is not grpc.StatusCode.DEADLINE_EXCEEDED:
        probe.fail("DEADLINE_EXCEEDED at the deadline", describe(call), call)
    if not steering.idle(probe):
        probe.fail("the work released within 5 s of the deadline", "it is still counted", call)
    _expect_free(probe, request.request_id, call)


def _expect_free(probe: Probe, request_id: str, call: Transcript) -> None:
    """The id can be used again: also an engine that tells no load shows so that it let go."""
    request = simple_request(probe.declared)
    request.request_id = request_id

    def free() -> bool:
        again = probe.call(GENERATE, request)
        return again.ending.code is not grpc.StatusCode.ALREADY_EXISTS

    seconds = probe.pace.required(steering.RELEASE_SECONDS) + probe.pace.unary
    if not probe.wait_until(free, seconds):
        probe.fail("the id free within 5 s of the deadline", "ALREADY_EXISTS", call)
