"""The client goes away from a running request: by cancelling, at a deadline, or lost (CANCEL)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from conformance.checks.check import check
from conformance.checks.core.abort_run import margin
from conformance.checks.core.judging import finishes
from conformance.checks.core.metadata import outputs
from conformance.checks.core.normal_end import ended_by_itself
from conformance.checks.core.release import at_rest, ids_free, released
from conformance.checks.probe import Probe, describe
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.strategies import simple_request
from conformance.strategies.simple import PROSE, long_request
from conformance.wire.connection import Connection
from conformance.wire.declared import Declared
from conformance.wire.live_call import LiveCall
from conformance.wire.relay import host_port, relay
from conformance.wire.target import Target
from conformance.wire.transcript import Transcript
from oe_wire import v1
from oe_wire.services import METHODS

# What CANCEL-003 asks for: this many requests, each cancelled after 0 to 5 ms.
EARLY = 50
EARLY_MS = 5
# Ids of early cancellations that are tried again: each costs a request.
TRIED_IDS = 3
# Streams on the connection that is lost.
LOST = 5
# Tokens of the request that must not notice that another is cancelled, and after how many of its
# messages that happens.
OTHER_TOKENS = 64
CANCEL_AFTER = 2


def _how(declared: Declared) -> Iterable[Case]:
    most = min(3, declared.max_num_sequences)
    yield _ending(declared, "cancel", 1, 1)
    yield _ending(declared, "deadline", 1, 1)
    yield _ending(declared, "cancel", most, 2)


def _ending(declared: Declared, how: str, sequences: int, after: int) -> Case:
    request = long_request(declared, sequences=sequences)
    return Case(request, params={"how": how, "after": after})


@check(
    "OE-CORE-CANCEL-001",
    advice="Stop the request when its call ends on the client's side (a callback of the server "
    "library tells), free its blocks and forget its id.",
    table=_how,
)
def cancelled_work_stops(probe: Probe, case: Case) -> None:
    """A cancelled request stops: the load returns to what it was and the id is free."""
    before = at_rest(probe)
    request = probe.prepared(case)
    limit = None
    if case.params["how"] == "deadline":
        limit = 2 * probe.pace.first_token + 8 * probe.pace.per_token + margin(probe) / 4
    live = probe.start(GENERATE, request, deadline=limit)
    begun = live.wait_event(case.params["after"])
    if limit is None:
        live.cancel()
    stream = probe.finish(live)
    if not begun or stream.undisturbed:
        probe.skip(f"the request was not cut short while it ran: {describe(stream)}")
    released(probe, before, "the cancellation", stream)
    ids_free(probe, (request.request_id,), "the cancellation")


def _pairs(declared: Declared) -> Iterable[Case]:
    for tokens in (OTHER_TOKENS, 1 + CANCEL_AFTER):
        request = simple_request(declared, prompt=PROSE, max_tokens=tokens, temperature=0.0)
        request.stopping.ignore_eos = True
        yield Case(request)


@check(
    "OE-CORE-CANCEL-002",
    advice="Free what belongs to the cancelled request only: its row of the batch, its blocks, its "
    "queue.",
    table=_pairs,
)
def other_stream_untouched(probe: Probe, case: Case) -> None:
    """Cancelling one stream changes neither the end nor the greedy output of another."""
    alone = _completed(probe, probe.generate(case))
    beside = _beside(probe, case, cancels=False)
    # Engines whose output depends on the batch are judged by how the stream ends.
    comparable = beside is not None and outputs(beside) == outputs(alone)
    disturbed = _beside(probe, case, cancels=True)
    if disturbed is None:
        probe.skip("the engine does not run two requests at once")
    ended_by_itself(probe, disturbed, "the other stream")
    if comparable and outputs(disturbed) != outputs(alone):
        probe.fail("the output of an undisturbed run", "another output", disturbed)


def _beside(probe: Probe, case: Case, *, cancels: bool) -> Transcript | None:
    """The case's request while a long one runs, which is cancelled meanwhile or afterwards; None
    when the long one did not begin.
    """
    other = probe.start_generate(Case(long_request(probe.declared)))
    if not other.wait_event(1, timeout=probe.pace.generate_limit(1)):
        other.cancel()
        probe.finish(other)
        return None
    live = probe.start_generate(case)
    if cancels:
        live.wait_event(CANCEL_AFTER)
        other.cancel()
    ended = probe.finish(live)
    other.cancel()
    other.wait_end(probe.pace.unary_limit())
    probe.finish(other)
    return ended


def _completed(probe: Probe, stream: Transcript) -> Transcript:
    if not (stream.ending.ok and finishes(stream)):
        probe.skip(f"the request does not end well by itself: {describe(stream)}")
    return stream


def _delays(declared: Declared) -> Iterable[Case]:
    delays = [number % (EARLY_MS + 1) for number in range(EARLY)]
    yield Case(long_request(declared), params={"delays_ms": delays})


@check(
    "OE-CORE-CANCEL-003",
    advice="Register the cancellation callback before the request is queued, and look whether the "
    "call is still there after every step of admission.",
    table=_delays,
)
def cancelled_before_first(probe: Probe, case: Case) -> None:
    """Requests that are cancelled within milliseconds leave nothing behind."""
    before = at_rest(probe)
    ids, last = [], None
    for milliseconds in case.params["delays_ms"]:
        request = probe.prepared(case)
        ids.append(request.request_id)
        live = probe.start(GENERATE, request)
        live.wait_event(1, timeout=milliseconds / 1000)
        live.cancel()
        last = probe.finish(live)
    released(probe, before, "the last of the early cancellations", last)
    ids_free(probe, ids[-TRIED_IDS:], "an early cancellation")


def _lost(declared: Declared) -> Iterable[Case]:
    yield Case(long_request(declared), params={"streams": LOST})


@check(
    "OE-CORE-CANCEL-004",
    advice="Let the end of a connection end every call on it: most server libraries cancel them, "
    "and work that runs beside the call must listen to that.",
    table=_lost,
)
def lost_connection(probe: Probe, case: Case) -> None:
    """Requests whose connection breaks off are cancelled, all of them."""
    before = at_rest(probe)
    target = probe.connection.target
    address = probe.connection.address_of(METHODS[GENERATE])
    calls: list[Transcript] = []
    with relay(address) as line:
        own = Connection(_through(target, address, line.address))
        try:
            live = [_start_on(probe, own, case) for _ in range(case.params["streams"])]
            limit = probe.pace.generate_limit(case.params["streams"])
            begun = all(stream.wait_event(1, timeout=limit) for stream in live)
            line.cut()
            calls = [stream.finish(probe.pace.unary_limit()) for stream in live]
        finally:
            own.close()
    for call in calls:
        probe.record(call)
    if not begun:
        probe.skip(f"the streams did not all begin: {describe(calls[0])}")
    if all(call.ending.ok for call in calls):
        probe.skip("the streams had ended before the connection was lost")
    released(probe, before, "the loss of the connection", calls[0])
    ids = [cast(v1.GenerateRequest, call.request).request_id for call in calls]
    ids_free(probe, ids, "the loss of the connection")


def _through(target: Target, address: str, line: str) -> Target:
    """The target as it is reached through a relay; certificates are checked against its name."""
    authority = target.authority
    if authority is None and target.tls is not None:
        authority = host_port(address)[0]
    return replace(target, address=line, control=None, authority=authority)


def _start_on(probe: Probe, connection: Connection, case: Case) -> LiveCall:
    request = probe.prepared(case)
    probe.spending.requests += 1
    probe.methods.add(GENERATE)
    return connection.start(METHODS[GENERATE], request, deadline=probe.limit(request))
