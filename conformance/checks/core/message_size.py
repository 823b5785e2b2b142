"""A message larger than the engine takes (ERR-008)."""

from __future__ import annotations

from collections.abc import Iterable

import grpc

from conformance.checks.check import check
from conformance.checks.probe import Probe, describe
from conformance.model.case import Case
from conformance.strategies import simple_request
from conformance.wire.connection import Connection
from conformance.wire.declared import Declared
from conformance.wire.transcript import Origin, Transcript
from oe_wire import health, v1
from oe_wire.services import METHODS

# The transport libraries differ.
TOO_LARGE = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.OUT_OF_RANGE)
# Sending more than this costs more than the answer is worth.
MAX_SENT_BYTES = 32 << 20
# Beyond the limit by this much: whether a few bytes of framing count is up to the library.
BEYOND_BYTES = 1024
SECONDS_PER_MEBIBYTE = 1.0
WATCH_SECONDS = 300.0
GENERATE = METHODS["openengine.v1.Inference/Generate"]
WATCH = METHODS["grpc.health.v1.Health/Watch"]


def _limit(declared: Declared) -> int | None:
    scope = declared.capabilities
    if scope is None or not scope.core.HasField("max_request_bytes"):
        return None
    return scope.core.max_request_bytes


def _one(declared: Declared) -> Iterable[Case]:
    return [Case(simple_request(declared))]


@check(
    "OE-CORE-ERR-008",
    advice="Set the receive limit of the gRPC server to max_request_bytes and let the library "
    "refuse what is larger; it keeps the connection and the other streams on it.",
    table=_one,
)
def oversized_message(probe: Probe, case: Case) -> None:
    """A message above the limit is refused by its size, and the connection serves on."""
    limit = _limit(probe.declared)
    if limit is None or limit > MAX_SENT_BYTES:
        probe.skip("max_request_bytes is unreported or too large to be exceeded", too_large=True)
    request = probe.prepared(case)
    # Bytes that only a parser would look at: no other limit is exceeded.
    request.extra["oe_conform_padding"] = "x" * (limit + BEYOND_BYTES)
    with Connection(probe.connection.target, probe.connection.routes) as own:
        # On the same connection: what ends it ends this stream too, even if the next call opens
        # another one unseen.
        watch = own.start(WATCH, health.HealthCheckRequest(), deadline=WATCH_SECONDS)
        watched = watch.wait_event(1, probe.pace.unary_limit())
        large = _send(probe, own, request)
        small = _send(probe, own, probe.prepared(case))
        lost = watched and watch.done
        watch.cancel()
        watch.finish()
    probe.expect_rejected(large, *TOO_LARGE, because=f"the message is larger than {limit} bytes")
    if lost:
        probe.fail("the other streams of the connection untouched", "one of them ended", large)
    if small.ending.origin is Origin.LOCAL:
        probe.fail("a connection that serves on", describe(small), small)


def _send(probe: Probe, own: Connection, request: v1.GenerateRequest) -> Transcript:
    """Make a call on a connection of this check's own, recorded and judged like any other."""
    seconds = request.ByteSize() / (1 << 20) * SECONDS_PER_MEBIBYTE
    deadline = probe.limit(request) + seconds * probe.pace.slow_factor
    probe.spending.requests += 1
    probe.methods.add(GENERATE.full_name)
    transcript = own.call(GENERATE, request, deadline=deadline)
    probe.record(transcript)
    return transcript
