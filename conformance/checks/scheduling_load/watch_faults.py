"""Checks of a load stream under changes of the engine: its capabilities, a failure, its end."""

from __future__ import annotations

from collections.abc import Iterable

import grpc

from conformance.checks import steering
from conformance.checks.check import check
from conformance.checks.probe import Probe, describe
from conformance.checks.scheduling_load.watching import (
    cancelled,
    close,
    open_watch,
    uphold,
    visible_limit,
    wait_for,
)
from conformance.laws.load_stream import of_kind, sent
from conformance.model.case import Case
from conformance.strategies.watch_load import quiet_request
from conformance.wire.declared import Declared
from oe_wire import v1

# Within which a change of the capabilities is on a stream that gives notice of it.
NOTICE_SECONDS = 2.0


@check(
    "OE-LOAD-046",
    advice="Put the current epoch and revision into every response, and send one at once when they "
    "change if change_notices has LOAD_STREAM.",
)
def stream_tells_the_revision(probe: Probe, _: Case) -> None:
    """A reconfiguration is on a silent stream soon, where that notice is advertised."""
    scope = probe.declared.engine_scope
    noticed = scope is not None and v1.CAPABILITY_CHANGE_NOTICE_LOAD_STREAM in scope.change_notices
    live = open_watch(probe, quiet_request())
    live.wait_event(2, visible_limit(probe, live))
    with steering.reconfigured(probe) as changed:
        pair = changed.configuration_epoch, changed.capability_revision

        def told() -> bool:
            return any(each.pair >= pair for each in sent(live.events))

        limit = probe.pace.required(NOTICE_SECONDS) + probe.pace.unary
        in_time = wait_for(probe, live, told, limit if noticed else 0.0)
        call = close(probe, live)
    uphold(probe)
    if noticed and not in_time and cancelled(call):
        actual = f"the last pair is {sent(call.events)[-1].pair}"
        probe.fail(f"(epoch, revision) {pair} within {NOTICE_SECONDS:g} s", actual, call)


def _ends(_: Declared) -> Iterable[Case]:
    return tuple(Case(params={"end": end}) for end in ("failure", "shutdown"))


@check(
    "OE-LOAD-047",
    table=_ends,
    advice="After the settings, tell a failure with one EngineError and close with OK; at shutdown "
    "end the streams with UNAVAILABLE.",
)
def stream_ends_well(probe: Probe, case: Case) -> None:
    """A failing source ends a stream with an error and OK, a shutdown with UNAVAILABLE."""
    live = open_watch(probe, quiet_request())
    if case.params["end"] == "shutdown":
        with steering.stopped(probe):
            # Not `probe.finish`, for which a lost connection is an error of the run.
            call = live.finish(probe.pace.unary_limit())
        probe.record(call)
        if call.ending.code is not grpc.StatusCode.UNAVAILABLE:
            probe.fail("UNAVAILABLE when the server shuts down", describe(call), call)
        return
    with steering.fault(probe, v1.FAULT_KIND_EVENT_SOURCE_FAILS):
        ended = live.wait_end(probe.pace.required(NOTICE_SECONDS) + probe.pace.unary)
        call = close(probe, live)
    errors = of_kind(sent(call.events), "error")
    if not ended and not errors:
        probe.skip("the stream did not fail with its source")
    if len(errors) != 1:
        probe.fail("one EngineError", f"{len(errors)}, then {describe(call)}", call)
    if not ended:
        probe.fail("an end after the EngineError", "the stream goes on", call)
    probe.settle()
