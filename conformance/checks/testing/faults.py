"""Faults on demand: which are armed, whom they hit, and how they are disarmed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import grpc

from conformance.checks.check import check
from conformance.checks.core.abort_run import margin
from conformance.checks.core.discovery_calls import answer
from conformance.checks.core.judging import BUSY, engine_errors, error_name, finishes
from conformance.checks.probe import Probe, describe
from conformance.checks.steering import TESTING, busy, fault
from conformance.model.case import Case
from conformance.strategies import simple_case
from conformance.strategies.simple import PROSE
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.transcript import Transcript
from oe_wire import v1

INJECT = f"{TESTING}/InjectFault"
CLEAR = f"{TESTING}/ClearFaults"
UNKNOWN_KIND = 9999
# Outputs of requests that a fault is to hit, or to leave alone.
TOKENS = 8
# How long the engine is to make no progress: far more than a step takes, or a busy machine adds.
WEDGED_MS = 1500
# Seconds of it that must be seen: messages that were on their way come late, and the fault may
# have struck before the answer to InjectFault arrived.
SILENT_SECONDS = 0.9
# Seconds in which requests must go on after that.
GO_ON_SECONDS = 5.0


@contextmanager
def cleared(probe: Probe) -> Iterator[None]:
    """Whatever the block arms is disarmed after it."""
    try:
        yield
    finally:
        probe.call(CLEAR, v1.ClearFaultsRequest())


def _kinds(_: Declared) -> Iterable[Case]:
    return [Case(params={"kind": kind}) for kind in (v1.FAULT_KIND_UNSPECIFIED, UNKNOWN_KIND)]


@check(
    "OE-TEST-001",
    table=_kinds,
    advice="Compare the kind with the list of faults that the engine can have; UNSPECIFIED is "
    "none of them.",
)
def unknown_kind_refused(probe: Probe, case: Case) -> None:
    """A kind that is none is INVALID_ARGUMENT."""
    call = probe.call(INJECT, v1.InjectFaultRequest(kind=case.params["kind"]))
    if call.ending.ok:
        probe.call(CLEAR, v1.ClearFaultsRequest())
    probe.expect_rejected(call, grpc.StatusCode.INVALID_ARGUMENT, because="there is no such fault")


@check(
    "OE-TEST-002",
    advice="Number the faults of an instance, or draw their ids at random.",
)
def fault_ids_differ(probe: Probe, _: Case) -> None:
    """Every armed fault has an id of its own."""
    seen: set[str] = set()
    with cleared(probe):
        for _fault in range(3):
            call = _arm(probe, probe.fresh_id())
            name = answer(call, v1.InjectFaultResponse)
            if name is None:
                probe.skip(f"the fault was not armed: {describe(call)}")
            if not name.fault_id:
                probe.fail("a fault_id", "an empty one", call)
            if name.fault_id in seen:
                probe.fail("another fault_id for another fault", "the same again", call)
            seen.add(name.fault_id)


def _arm(probe: Probe, request_id: str, after_tokens: int = 0) -> Transcript:
    """Arm a fault for one request: harmless as long as nobody uses the id."""
    request = v1.InjectFaultRequest(
        kind=v1.FAULT_KIND_REQUEST_FAILS, request_id=request_id, after_tokens=after_tokens
    )
    return probe.call(INJECT, request)


def _request(declared: Declared) -> Case:
    case = simple_case(declared, prompt=PROSE, max_tokens=TOKENS, temperature=0.0)
    if isinstance(case.request, v1.GenerateRequest):
        case.request.stopping.ignore_eos = True
    return case


@check(
    "OE-TEST-003",
    advice="Empty the list of armed faults, whatever is in it, and answer OK when it is empty.",
)
def faults_cleared(probe: Probe, _: Case) -> None:
    """ClearFaults works without faults, and a cleared fault does not strike."""
    for _again in range(2):
        call = probe.call(CLEAR, v1.ClearFaultsRequest())
        if not call.ending.ok:
            probe.fail("OK when no fault is armed", describe(call), call)
    request = probe.prepared(_request(probe.declared))
    with cleared(probe):
        armed = _arm(probe, request.request_id)
        if not armed.ending.ok:
            probe.skip(f"the fault was not armed: {describe(armed)}")
        call = probe.call(CLEAR, v1.ClearFaultsRequest())
        if not call.ending.ok:
            probe.fail("OK when a fault is armed", describe(call), call)
        hit = probe.generate(Case(request))
    if hit.rejected and hit.ending.code in BUSY:
        probe.skip(f"the engine was busy: {hit.ending.code.name}")
    if any(True for _error in engine_errors(hit)) or not hit.ending.ok:
        probe.fail("the request to finish: its fault was cleared", _outcome(hit), hit)


@check(
    "OE-TEST-004",
    advice="Match the fault's request_id with the whole id, count the tokens of that request, and "
    "end it with EngineError INTERNAL and status OK.",
)
def named_request_fails(probe: Probe, _: Case) -> None:
    """The named request fails after the stated tokens, and another one finishes."""
    case = _request(probe.declared)
    named, other = probe.prepared(case), probe.prepared(case)
    after = min(3, named.stopping.max_tokens - 1)
    if after < 1:
        probe.skip("the engine's limits leave no room for a fault in the middle")
    with fault(probe, v1.FAULT_KIND_REQUEST_FAILS, request_id=named.request_id, after_tokens=after):
        spared = probe.start_generate(Case(other))
        spared.wait_event(1)
        hit = probe.generate(Case(named))
        undisturbed = probe.finish(spared)
    for call in (hit, undisturbed):
        if call.rejected and call.ending.code in BUSY:
            probe.skip(f"the engine was busy: {call.ending.code.name}")
    _failed_once(probe, hit)
    count = sum(
        len(message.token.tokens)
        for message in hit.messages
        if isinstance(message, v1.GenerateResponse)
    )
    if count != after:
        probe.fail(f"the failure after {after} tokens", f"after {count}", hit)
    if not finishes(undisturbed) or any(True for _error in engine_errors(undisturbed)):
        probe.fail("another request to finish", _outcome(undisturbed), undisturbed)


def _failed_once(probe: Probe, hit: Transcript) -> None:
    errors = list(engine_errors(hit))
    if len(errors) != 1 or errors[0][1].code != v1.ERROR_CODE_INTERNAL:
        probe.fail("one EngineError INTERNAL for the named request", _outcome(hit), hit)


def _outcome(call: Transcript) -> str:
    errors = [error for _, error in engine_errors(call)]
    return f"EngineError {error_name(errors[0])}" if errors else describe(call)


@check(
    "OE-TEST-005",
    advice="Hold the scheduler for duration_ms on the engine's own clock and let it go by itself; "
    "the requests that it holds go on.",
)
def wedge_ends(probe: Probe, _: Case) -> None:
    """A wedged engine makes no progress for the stated time, and then goes on."""
    # Twice, since a busy machine may deliver late what came before the wedge.
    silence = _wedged(probe)
    if silence < SILENT_SECONDS:
        silence = _wedged(probe)
    if silence < SILENT_SECONDS:
        probe.fail(f"no progress for {WEDGED_MS} ms", f"{silence * 1000:.0f} ms at most")


def _wedged(probe: Probe) -> float:
    """The longest silence of a request while the engine is wedged, in seconds."""
    with busy(probe) as live, fault(probe, v1.FAULT_KIND_ENGINE_WEDGED, duration_ms=WEDGED_MS):
        armed = live.elapsed
        limit = probe.pace.required(WEDGED_MS / 1000 + GO_ON_SECONDS) + margin(probe)
        probe.wait_until(lambda: live.done or _silence(live, armed) >= SILENT_SECONDS, limit)
        on = live.done or live.wait_event(len(live.events) + 1, timeout=limit)
        silence = _silence(live, armed)
        last = max(event.seconds for event in live.events)
    if not on:
        wanted = f"progress within {GO_ON_SECONDS:g} s of the end of the wedge"
        probe.fail(wanted, f"none within {limit:.1f} s of its beginning")
    if silence < SILENT_SECONDS and last < armed + SILENT_SECONDS / 2:
        probe.skip("the request ended before the engine was wedged")
    return silence


def _silence(live: LiveCall, since: float) -> float:
    """The longest time without a message after `since`, up to now; seconds."""
    times = [since, *(event.seconds for event in live.events if event.seconds > since)]
    if not live.done:
        times.append(live.elapsed)
    return max((late - early for early, late in pairwise(times)), default=0.0)
