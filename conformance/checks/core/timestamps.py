"""Times that an engine tells: Unix nanoseconds, by a clock that is about right."""

from __future__ import annotations

import time
from collections.abc import Iterator

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import answer, engine_facts
from conformance.checks.probe import Probe
from conformance.checks.steering import OBSERVABILITY
from conformance.model.case import Case
from conformance.wire.transcript import Transcript
from oe_wire import v1

# How far an engine's clock may be from this one; the operator's slow factor widens it.
SKEW_SECONDS = 300.0
# The start of a process may lie far back; a number in another unit lies decades back.
OLDEST_SECONDS = 10 * 365 * 86400.0


@check(
    "OE-CORE-ENUM-004",
    advice="Convert the wall clock to nanoseconds since 1970 (not milliseconds, and not a "
    "monotonic clock), and keep the clock synchronised.",
)
def unix_nanoseconds(probe: Probe, _: Case) -> None:
    """Times of answers lie within five minutes of this clock; a start lies before."""
    skew = probe.pace.required(SKEW_SECONDS)
    judged = False
    for where, nanos, earliest, call in _times(probe):
        judged = True
        ahead = nanos / 1e9 - time.time()
        if not -(earliest + skew) <= ahead <= skew:
            wanted = f"{where} in Unix nanoseconds, within {skew:g} s of this clock"
            probe.fail(wanted, f"{nanos}, {ahead:+.0f} s away", call)
    if not judged:
        probe.skip("no answer tells a time")


def _times(probe: Probe) -> Iterator[tuple[str, int, float, Transcript]]:
    """Name of the field, its value, seconds by which it may lie back, and the call."""
    facts = engine_facts(probe)
    if isinstance(facts.message, v1.EngineInfo) and facts.message.HasField("started_at_unix_nanos"):
        yield "started_at", facts.message.started_at_unix_nanos, OLDEST_SECONDS, facts.call
    for service in ("openengine.v1.Control", OBSERVABILITY):
        if service == OBSERVABILITY and "scheduling_load" not in probe.declared.profiles:
            continue
        call = probe.call(f"{service}/GetLoad", v1.GetLoadRequest())
        info = answer(call, v1.LoadInfo)
        if info is not None and info.HasField("timestamp_unix_nanos"):
            yield "LoadInfo.timestamp", info.timestamp_unix_nanos, 0.0, call
    if "scheduling_load" in probe.declared.profiles:
        watch = probe.start(f"{OBSERVABILITY}/WatchLoad", v1.WatchLoadRequest())
        watch.wait_event(1, timeout=probe.pace.unary_limit())
        watch.cancel()
        call = probe.finish(watch)
        for message in call.messages[:1]:
            if isinstance(message, v1.WatchLoadResponse):
                yield "WatchLoad timestamp", message.timestamp_unix_nanos, 0.0, call
