"""How an engine that is full says so (GEN-035)."""

from __future__ import annotations

from collections.abc import Iterable

import grpc

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.core.judging import engine_errors, error_name
from conformance.checks.core.stream_cases import prose
from conformance.checks.probe import Probe, describe
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.strategies.simple import long_request
from conformance.wire.declared import Declared
from conformance.wire.transcript import Origin, Transcript
from oe_wire import v1

# No more calls at a time than this; a queue behind more running requests costs too much to fill.
MAX_CALLS = 64
# So many times the advertised number of running requests are sent, for the queue behind them.
TIMES_RUNNING = 4
FLOOD_TOKENS = 64


def _ways(declared: Declared) -> Iterable[Case]:
    running = getattr(declared.engine, "capacity", v1.DeploymentCapacity()).max_running_requests
    calls = TIMES_RUNNING * running
    yield Case(prose(declared), params={"way": "out of blocks"})
    yield Case(long_request(declared, FLOOD_TOKENS), params={"way": "flood", "calls": calls})


@check(
    "OE-CORE-GEN-035",
    advice="Refuse what does not fit with RESOURCE_EXHAUSTED; if the request was accepted already, "
    "send EngineError OVERLOADED with retryable true. Clients back off and retry on these only.",
    table=_ways,
)
def overload_is_told(probe: Probe, case: Case) -> None:
    """A full engine refuses with RESOURCE_EXHAUSTED or fails the request as OVERLOADED."""
    if case.params["way"] == "flood":
        transcripts = _flood(probe, case)
    elif "testing" in probe.declared.profiles:
        with steering.fault(probe, v1.FAULT_KIND_OUT_OF_BLOCKS):
            transcripts = [probe.generate(case)]
    else:
        probe.skip("the engine does not advertise testing", too_large=True)
    told = [_told(probe, transcript) for transcript in transcripts]
    if not any(told):
        probe.skip("the engine took everything", too_large=True)


def _flood(probe: Probe, case: Case) -> list[Transcript]:
    calls = case.params["calls"]
    if not 0 < calls <= MAX_CALLS:
        probe.skip("max_running_requests is unreported or too large to be exceeded", too_large=True)
    live = [probe.start(GENERATE, probe.prepared(case)) for _ in range(calls)]
    return [probe.finish(call) for call in live]


def _told(probe: Probe, transcript: Transcript) -> bool:
    """Whether this request was turned away, and rightly so."""
    expected = "RESOURCE_EXHAUSTED, or EngineError OVERLOADED with retryable true"
    for at, error in engine_errors(transcript):
        if error.code != v1.ERROR_CODE_OVERLOADED or not error.retryable:
            word = "retryable" if error.retryable else "not retryable"
            actual = f"EngineError {error_name(error)}, {word}"
            probe.fail(expected, actual, transcript, at)
        return True
    ending = transcript.ending
    if not transcript.rejected or ending.origin is not Origin.REMOTE:
        return False
    if ending.code is not grpc.StatusCode.RESOURCE_EXHAUSTED:
        probe.fail(expected, describe(transcript), transcript)
    return True
