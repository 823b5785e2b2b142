"""Checks of what a load stream grants: intervals and ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import grpc

from conformance.checks.check import Body, Check, Table, check
from conformance.checks.probe import Probe
from conformance.checks.scheduling_load.watching import (
    GET_LOAD,
    WATCH,
    WATCH_SECONDS,
    bounds,
    close,
    granted,
    open_watch,
    thorough,
)
from conformance.laws.load_stream import bounds_of, insane
from conformance.model.case import Case
from conformance.strategies.watch_load import (
    MOST,
    inside_cases,
    interval_cases,
    one,
    outside_cases,
    short_heartbeat_cases,
)
from conformance.wire.declared import Declared
from conformance.wire.transcript import Transcript
from oe_wire import v1

# Statuses by which an engine would refuse an interval instead of moving it to a bound.
REFUSALS = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE)
# For heartbeats that should be off: enough to see one at the default pace, at most this long.
OFF_SHARE = 1.2
MOST_OFF_SECONDS = 10.0


def ask(probe: Probe, case: Case) -> Transcript:
    """Send the case's request and stop after the settings; skips without a request."""
    if case.request is None:
        bounds(probe)
        probe.skip("the bounds leave no such interval")
    live = probe.start(WATCH, case.request, deadline=WATCH_SECONDS)
    live.wait_event(1, probe.pace.unary_limit())
    return close(probe, live)


def settings_say(probe: Probe, case: Case) -> None:
    """What the law says about the settings decides."""
    ask(probe, case)
    probe.settle()


def clamped(probe: Probe, case: Case) -> None:
    """As `settings_say`; a refusal breaks the row too."""
    call = ask(probe, case)
    if call.rejected and call.ending.code in REFUSALS:
        probe.fail("a stream, with the interval clamped", call.ending.code.name, call)
    probe.settle()


def silent(probe: Probe, case: Case) -> None:
    """As `settings_say`; one case stays long enough to see that heartbeats are off."""
    if "idle" not in case.params:
        return settings_say(probe, case)
    limits = bounds(probe)
    live = open_watch(probe, cast(v1.WatchLoadRequest, case.request))
    if not granted(live).effective_heartbeat_interval_ms:
        pause = min(MOST_OFF_SECONDS, OFF_SHARE * limits.heartbeat_default_ms / 1000)
        pause = MOST_OFF_SECONDS if thorough(probe) else pause
        probe.wait_until(lambda: live.done, pause)
    close(probe, live)
    return probe.settle()


def sane(probe: Probe, case: Case) -> None:
    """The advertised bounds are in order, and heartbeats are no closer than snapshots."""
    scope = probe.declared.engine_scope
    if scope is None or not scope.observability.HasField("load"):
        probe.skip("the engine advertises no limits of scheduling_load")
    for name in insane(scope.observability.load):
        probe.fail(f"1 <= floor <= default <= ceiling for {name}", "another order")
    settings_say(probe, case)


def _silent_cases(_: Declared) -> Iterable[Case]:
    request = v1.WatchLoadRequest(heartbeat_interval_ms=0)
    return (*one(None, 0), *one(0, 0), Case(request, params={"idle": True}))


def _bounded_cases(declared: Declared) -> Iterable[Case]:
    """One case without a request where the bounds are insane, so that the body can say so."""
    return (Case(),) if bounds_of(declared) is None else short_heartbeat_cases(declared)


def _settings_check(
    requirement: str, table: Table, advice: str, body: Body, waits: float = 0.0
) -> Check:
    return check(requirement, table=table, strategy=interval_cases, advice=advice, waits=waits)(
        body
    )


CHECKS = (
    _settings_check(
        "OE-LOAD-023",
        lambda _: one(None, None),
        "Take the advertised default for an interval that the request does not name.",
        settings_say,
    ),
    _settings_check(
        "OE-LOAD-024",
        lambda _: one(0, None),
        "Read min_interval_ms = 0 as the floor, and do not flag it as clamped.",
        settings_say,
    ),
    _settings_check(
        "OE-LOAD-025",
        _silent_cases,
        "Read heartbeat_interval_ms = 0 as no heartbeats, or as the ceiling with the flag where "
        "heartbeat_can_be_disabled is false.",
        silent,
        waits=1.0,
    ),
    _settings_check(
        "OE-LOAD-026",
        outside_cases,
        "Move an interval outside the bounds to the nearest bound, flag it, and go on.",
        clamped,
    ),
    _settings_check(
        "OE-LOAD-027",
        inside_cases,
        "Use an interval within the bounds as it is, unflagged.",
        settings_say,
    ),
    _settings_check(
        "OE-LOAD-028",
        _bounded_cases,
        "Advertise 1 <= floor <= default <= ceiling, and raise a heartbeat interval below the "
        "snapshot interval to it, flagged.",
        sane,
    ),
)


def _rank_cases(_: Declared) -> Iterable[Case]:
    return tuple(Case(params={"ranks": kind}) for kind in ("unasked", "off", "unknown", "twice"))


@check(
    "OE-LOAD-043",
    table=_rank_cases,
    advice="Refuse ranks without include_per_rank and unknown ones with INVALID_ARGUMENT; merge "
    "duplicates and list the ranks ascending in the settings.",
)
def ranks(probe: Probe, case: Case) -> None:
    """A bad choice of ranks is refused, a good one is granted merged and ascending."""
    kind = case.params["ranks"]
    if kind == "twice":
        return _merged(probe)
    request = {
        "unasked": v1.WatchLoadRequest(data_parallel_ranks=[0]),
        "off": v1.WatchLoadRequest(data_parallel_ranks=[0], include_per_rank=False),
        "unknown": v1.WatchLoadRequest(data_parallel_ranks=[MOST], include_per_rank=True),
    }[kind]
    call = ask(probe, Case(request))
    return probe.expect_rejected(call, grpc.StatusCode.INVALID_ARGUMENT)


def _merged(probe: Probe) -> None:
    if not bounds(probe).supports_per_rank:
        probe.skip("the engine does not report per rank")
    load = probe.call(GET_LOAD, v1.GetLoadRequest(include_per_rank=True))
    found = load.messages[0] if load.messages else None
    if not isinstance(found, v1.LoadInfo) or not found.ranks:
        probe.skip("GetLoad names no ranks")
    known = sorted({rank.data_parallel_rank for rank in found.ranks})
    wished = [*reversed(known), *known]
    request = v1.WatchLoadRequest(data_parallel_ranks=wished, include_per_rank=True)
    live = open_watch(probe, request)
    listed = list(granted(live).data_parallel_ranks)
    call = close(probe, live)
    if listed != known:
        probe.fail(f"the ranks {known} in the settings", str(listed), call, 0)
