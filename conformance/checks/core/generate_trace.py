"""What a refused request leaves behind: nothing (GEN-034)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice

import grpc

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.core.abort_run import abort_status, send_abort
from conformance.checks.core.judging import send_cut
from conformance.checks.probe import Probe
from conformance.laws.law import GENERATE
from conformance.model.case import FRESH_ID, Case
from conformance.oracle import expect
from conformance.strategies import faults, simple_request
from conformance.wire.declared import Declared
from oe_wire import v1

# As many as a leak needs to show in any count, and cheap: none of them is computed.
INVALID_REQUESTS = 100
# Ids of refused requests that are looked at afterwards.
LOOKED_AT = 3
# Requests larger than this are sent once and not over and over.
LARGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class State:
    """Requests that the engine counts (None: it does not tell), and its standard health."""

    running: int | None
    queued: int | None
    health: str


def _state(probe: Probe) -> State:
    info = steering.load(probe)
    return State(_count(info, "running_requests"), _count(info, "queued_requests"), _health(probe))


def _count(info: v1.LoadInfo | None, name: str) -> int | None:
    if info is None or not info.HasField(name):  # type: ignore[arg-type]
        return None
    return int(getattr(info, name))


def _health(probe: Probe) -> str:
    return "" if probe.declared.legacy else steering.serving(probe)


def _rounds(declared: Declared) -> Iterable[Case]:
    return [Case(simple_request(declared), params={"requests": INVALID_REQUESTS})]


@check(
    "OE-CORE-GEN-034",
    advice="Validate before the id is registered, the request counted or a block taken; or undo "
    "all of it on every path that refuses.",
    table=_rounds,
)
def no_trace(probe: Probe, case: Case) -> None:
    """Refused requests change neither the load nor the health, and their ids stay free."""
    before = _state(probe)
    refused = list(_refused(probe, case.params["requests"]))
    if not refused:
        probe.skip("no invalid request was refused")
    _expect_unchanged(probe, before)
    for request_id in refused[-LOOKED_AT:]:
        _expect_free(probe, case, request_id)
    status = send_abort(probe, refused[0])
    if abort_status(status) == "ABORTED":
        probe.fail("no running request under a refused id", "Abort answered ABORTED", status)


def _refused(probe: Probe, count: int) -> Iterator[str]:
    """Send so many invalid requests; the usable ids of those that were refused."""
    for invalid in islice(_invalid(probe.declared), count):
        request = probe.prepared(Case(invalid))
        transcript = send_cut(probe, Case(request), request)
        if transcript.rejected and invalid.request_id == FRESH_ID:
            yield request.request_id


def _invalid(declared: Declared) -> Iterator[v1.GenerateRequest]:
    """The simplest request with every fault, then over and over with those that cost little."""
    found = []
    for wrong in faults(declared):
        request = simple_request(declared)
        wrong.apply(request)
        found.append(request)
    yield from found
    yield from cycle([request for request in found if request.ByteSize() <= LARGE_BYTES])


def _expect_unchanged(probe: Probe, before: State) -> None:
    """Load may lag behind by the time between two samples, hence the wait."""
    states: list[State] = []

    def as_before() -> bool:
        states.append(_state(probe))
        return not _grown(before, states[-1]) and states[-1].health == before.health

    seconds = probe.pace.required(steering.RELEASE_SECONDS) + probe.pace.unary
    if probe.wait_until(as_before, seconds):
        return
    now = states[-1]
    if now.health != before.health:
        probe.fail(f"health {before.health} as before", now.health)
    grown = _grown(before, now)
    probe.fail("the load as before the refused requests", f"{grown} after them")


def _grown(before: State, now: State) -> str:
    for name in ("running", "queued"):
        was, is_now = getattr(before, name), getattr(now, name)
        if was is not None and is_now is not None and is_now > was:
            return f"{name}_requests {is_now}, {was} before"
    return ""


def _expect_free(probe: Probe, case: Case, request_id: str) -> None:
    request = probe.prepared(case)
    request.request_id = request_id
    if not expect(request, (), probe.declared).accepted:
        return
    transcript = probe.call(GENERATE, request)
    if transcript.ending.code is grpc.StatusCode.ALREADY_EXISTS:
        probe.fail("the id of a refused request to be free", "ALREADY_EXISTS", transcript)
