"""Trace context is accepted on every RPC and never fails one: TRACE-001 to 005.

Whether it is passed on (TRACE-006 and 007) shows only where an engine calls others: it fetches a
MediaItem.url, or reports stage events.
"""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from conformance.checks.check import check
from conformance.checks.core.discovery_calls import WATCH, check_health
from conformance.checks.core.judging import judge
from conformance.checks.core.metadata import same_outcome
from conformance.checks.core.plain_calls import INFERENCE, plain_calls
from conformance.checks.probe import Probe, describe
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.oracle.trace import PARENT, STATE, Parent, parent_kind, state_parses, values
from conformance.strategies import simple_case
from conformance.strategies.trace import (
    FUTURE,
    INVALID,
    UNPARSABLE_STATES,
    VALID,
    VALID_STATE,
    future_parents,
    invalid_parents,
    states,
    valid_parents,
)
from conformance.wire.declared import Declared
from conformance.wire.transcript import Metadata
from oe_wire import health

SERVER_INFO = "openengine.v1.Control/GetServerInfo"


def _on(declared: Declared, method: str, *metadata: tuple[str, str | bytes]) -> Case:
    """A case that sends the metadata with the simplest call of a method."""
    request = simple_case(declared).request if method == GENERATE else None
    return Case(request, metadata, {"method": method})


def _methods(declared: Declared) -> tuple[str, ...]:
    """Where a value is tried: the data plane, if there is one, and a call of each other kind."""
    return (GENERATE, SERVER_INFO) if declared.generates else (SERVER_INFO,)


def _each(declared: Declared, *variants: Metadata) -> Iterable[Case]:
    """Every variant, by turns on the methods of `_methods`; the first one on all of them."""
    methods = _methods(declared)
    for method in methods:
        yield _on(declared, method, *variants[0])
    for number, metadata in enumerate(variants[1:]):
        yield _on(declared, methods[number % len(methods)], *metadata)


def _drawn(declared: Declared, metadata: st.SearchStrategy[Metadata]) -> st.SearchStrategy[Case]:
    methods = st.sampled_from(_methods(declared))
    return st.builds(lambda method, pairs: _on(declared, method, *pairs), methods, metadata)


def same_with(probe: Probe, case: Case) -> None:
    """The call of the case goes as it goes without the metadata."""
    method = case.params["method"]
    if method == WATCH:
        _watched(probe, case.metadata)
    elif method == GENERATE:
        judge(probe, case)
    else:
        same_outcome(probe, case)


def _watched(probe: Probe, metadata: Metadata) -> None:
    """Health/Watch sends a message with the metadata, if Check knows the name."""
    before = check_health(probe, INFERENCE)
    if not before.ending.ok:
        probe.skip(f"Check does not know the name: {describe(before)}")
    watch = probe.start(WATCH, health.HealthCheckRequest(service=INFERENCE), metadata=metadata)
    watch.wait_event(1)
    watch.cancel()
    call = probe.finish(watch)
    if not call.events:
        probe.fail("a first message, as without trace context", describe(call), call)


def _everywhere(declared: Declared) -> Iterable[Case]:
    methods = [*plain_calls(declared)]
    if declared.generates:
        methods.append(GENERATE)
    if not declared.legacy:
        methods.append(WATCH)
    for method in methods:
        yield _on(declared, method, (PARENT, VALID), (STATE, VALID_STATE))


@check(
    "OE-CORE-TRACE-001",
    advice="Take traceparent and tracestate on every RPC: callers set them on each of theirs.",
    table=_everywhere,
    strategy=lambda declared: _drawn(
        declared, valid_parents().map(lambda parent: ((PARENT, parent), (STATE, VALID_STATE)))
    ),
)
def accepted_everywhere(probe: Probe, case: Case) -> None:
    """Every RPC goes with valid trace context as it goes without."""
    same_with(probe, case)


@check(
    "OE-CORE-TRACE-002",
    advice="Ignore a traceparent that does not parse and start a trace of your own, or none.",
    table=lambda declared: _each(declared, *(((PARENT, value),) for value in INVALID)),
    strategy=lambda declared: _drawn(
        declared, invalid_parents().map(lambda value: ((PARENT, value),))
    ),
)
def invalid_parent(probe: Probe, case: Case) -> None:
    """An invalid traceparent never fails a call."""
    if any(parent_kind(value) is not Parent.INVALID for value in values(case.metadata, PARENT)):
        probe.skip("the drawn traceparent is valid")
    same_with(probe, case)


@check(
    "OE-CORE-TRACE-003",
    advice="Read the first four fields of a traceparent of a higher version, and of the flags only "
    "those that you know.",
    table=lambda declared: _each(declared, *(((PARENT, value),) for value in FUTURE)),
    strategy=lambda declared: _drawn(
        declared, future_parents().map(lambda value: ((PARENT, value),))
    ),
)
def future_parent(probe: Probe, case: Case) -> None:
    """Higher versions and unknown flags are accepted."""
    if any(parent_kind(value) is not Parent.FUTURE for value in values(case.metadata, PARENT)):
        probe.skip("the drawn traceparent is invalid, or of today")
    same_with(probe, case)


def _several(declared: Declared) -> Iterable[Case]:
    other = VALID.replace("00f0", "11f0")
    return _each(
        declared,
        ((PARENT, VALID), (PARENT, other)),
        ((PARENT, VALID), (STATE, "congo=1"), (STATE, "rojo=2")),
        ((PARENT, VALID), (PARENT, VALID)),
        ((PARENT, VALID), (PARENT, VALID), (STATE, VALID_STATE)),
        ((PARENT, VALID), (STATE, ""), (STATE, VALID_STATE), (STATE, "x=3")),
    )


@check(
    "OE-CORE-TRACE-004",
    advice="Treat several traceparent values as an invalid one, and join those of tracestate with "
    "commas.",
    table=_several,
)
def repeated_context(probe: Probe, case: Case) -> None:
    """Trace keys that are given twice never fail a call."""
    same_with(probe, case)


def _halves(declared: Declared) -> Iterable[Case]:
    unparsable = (((PARENT, VALID), (STATE, value)) for value in UNPARSABLE_STATES)
    return _each(
        declared,
        ((STATE, VALID_STATE),),
        *unparsable,
        ((STATE, UNPARSABLE_STATES[0]),),
        ((PARENT, INVALID[1]), (STATE, VALID_STATE)),
    )


@check(
    "OE-CORE-TRACE-005",
    advice="Look at tracestate only after a valid traceparent, and drop it when it does not parse; "
    "neither is an error.",
    table=_halves,
    strategy=lambda declared: _drawn(
        declared, states().map(lambda value: ((PARENT, VALID), (STATE, value)))
    ),
)
def half_a_context(probe: Probe, case: Case) -> None:
    """A tracestate alone, or one that does not parse, never fails a call."""
    found = values(case.metadata, PARENT)
    if found and all(state_parses(value) for value in values(case.metadata, STATE)):
        if parent_kind(found[0]) is not Parent.INVALID:
            probe.skip("the drawn tracestate parses")
        if not _goes_alone(probe, case, found[0]):
            probe.skip("the invalid traceparent fails the call without any tracestate")
    same_with(probe, case)


def _goes_alone(probe: Probe, case: Case, parent: str) -> bool:
    """Whether the call ends well with this traceparent and nothing else."""
    metadata = ((PARENT, parent),)
    if case.params["method"] == GENERATE:
        return probe.generate(Case(case.request, metadata)).ending.ok
    request = plain_calls(probe.declared)[SERVER_INFO]
    return probe.call(SERVER_INFO, request, metadata=metadata).ending.ok
