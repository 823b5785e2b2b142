"""Rules about the messages of one health watch."""

from __future__ import annotations

from itertools import pairwise

from conformance.laws.law import Finding, Ruling, law
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import health

WATCH = "grpc.health.v1.Health/Watch"


@law("OE-CORE-HEALTH-007", methods=frozenset({WATCH}))
def no_repetition(transcript: Transcript, _: Declared) -> Ruling:
    """No message says what the one before it said."""
    statuses = [
        message.status
        for message in transcript.messages
        if isinstance(message, health.HealthCheckResponse)
    ]
    for position, (before, now) in enumerate(pairwise(statuses), start=1):
        if before == now:
            values = health.HealthCheckResponse.ServingStatus.DESCRIPTOR.values_by_number
            name = values[now].name if now in values else str(now)
            return Finding("a message only when the status changes", f"{name} again", position)
    return True if statuses else None


LAWS = (no_repetition,)
