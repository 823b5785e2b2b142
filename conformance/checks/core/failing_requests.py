"""Requests that fail on purpose, for the rows about EngineError (STREAM-011, USE-008, ERR-002)."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from conformance.checks import steering
from conformance.checks.core import stream_cases
from conformance.checks.core.laws import follow
from conformance.checks.probe import Probe
from conformance.laws.law import GENERATE
from conformance.model.case import Case
from conformance.strategies import cases, requests
from conformance.wire.declared import Declared
from oe_wire import v1

# Some tokens more than those after which a request fails.
TOKENS = 12
FAILS_AFTER = (1, 3)


def failing(declared: Declared) -> Iterator[Case]:
    """Requests that the engine is told to fail. Where it cannot be told ordinary ones, which may
    fail by themselves.
    """
    if "testing" not in declared.profiles:
        yield from stream_cases.plain_and_faulty(declared)
        return
    for after in FAILS_AFTER:
        request = stream_cases.prose(declared, max_tokens=TOKENS, temperature=0.0)
        request.stopping.ignore_eos = True
        yield Case(request, params={"fails_after": after})


def any_failing(declared: Declared) -> st.SearchStrategy[Case]:
    """Any valid requests, which fail after a few tokens if they get that far."""
    if "testing" not in declared.profiles:
        return cases(declared)
    return st.builds(
        lambda request, after: Case(request, params={"fails_after": after}),
        requests(declared),
        st.integers(1, 4),
    )


def follow_failure(probe: Probe, case: Case) -> None:
    """Make the case's call, failing where it says so; what the law says about it decides."""
    after = case.params.get("fails_after")
    if after is None:
        follow(probe, case)
        return
    request = probe.prepared(case)
    kind = v1.FAULT_KIND_REQUEST_FAILS
    with steering.fault(probe, kind, request_id=request.request_id, after_tokens=after):
        probe.call(GENERATE, request, metadata=case.metadata)
    probe.settle()
