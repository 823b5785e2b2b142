"""The rules about versions: a later minor, a second major or a vendor's profile changes nothing.

Every run judges the requirements of the versions that the suite knows, whatever else an engine
advertises. The checks here look at the reason: on an engine that advertises more, requests that
know nothing of it must be answered as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import grpc
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.checks.check import Strategy, Table, check
from conformance.checks.core.judging import BUSY, completed, outcome, send_cut
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.oracle import expect
from conformance.strategies import cases, faults, simple_case, simple_request, single_faults
from conformance.strategies.faults import with_fault
from conformance.strategies.simple import PROSE
from conformance.wire.declared import Declared

PACKAGE = "openengine.v1."
# A few wrong requests: the statuses of 1.0 must stay as well.
FAULTS = 6


def _later_minor(declared: Declared) -> list[str]:
    return [f"core 1.{minor}" for minor in _versions(declared, "core").get(1, []) if minor > 0]


def _more_majors(declared: Declared) -> list[str]:
    scope = declared.engine_scope
    names = dict.fromkeys(() if scope is None else (item.name for item in scope.profiles))
    return [name for name in names if len(_versions(declared, name)) > 1]


def _vendor_profiles(declared: Declared) -> list[str]:
    return sorted(name for name in declared.profiles if "." in name)


def _versions(declared: Declared, name: str) -> dict[int, list[int]]:
    """Minors by major of the entries of one profile."""
    found: dict[int, list[int]] = {}
    scope = declared.engine_scope
    for item in () if scope is None else scope.profiles:
        if item.name == name:
            found.setdefault(item.major, []).append(item.minor)
    return found


Claimed = Callable[[Declared], list[str]]


def _table(claimed: Claimed) -> Table:
    def table(declared: Declared) -> Iterable[Case]:
        if not claimed(declared) or not declared.generates:
            return (Case(),)
        rules = dict.fromkeys(fault.rule for fault in faults(declared))
        wrong = [with_fault(declared, simple_request(declared), rule)[0] for rule in rules]
        return [_explicit_defaults(declared), simple_case(declared, max_tokens=4), *wrong[:FAULTS]]

    return table


def _strategy(claimed: Claimed) -> Strategy:
    def strategy(declared: Declared) -> SearchStrategy[Case]:
        if not claimed(declared) or not declared.generates:
            return st.just(Case())
        return st.one_of(cases(declared), single_faults(declared))

    return strategy


def _explicit_defaults(declared: Declared) -> Case:
    """What 1.0 calls off or the default, spelt out: a tightened rule often hits it first."""
    request = simple_request(declared, prompt=PROSE, max_tokens=4)
    sampling = request.sampling
    sampling.temperature = 1.0
    sampling.top_p, sampling.top_k, sampling.min_p = 1.0, 0, 0.0
    sampling.repetition_penalty = 1.0
    sampling.frequency_penalty = sampling.presence_penalty = 0.0
    sampling.num_sequences = 1
    request.stopping.ignore_eos = False
    request.stopping.include_stop_in_output = False
    request.kv.bypass_prefix_cache = False
    return Case(request)


def _as_in_1_0(probe: Probe, case: Case) -> None:
    """The oracle of core 1.0 decides the answer to the case's request."""
    if case.request is None:
        return  # nothing is claimed beyond 1.0, or it does not generate
    request = probe.prepared(case)
    expectation = expect(request, case.metadata, probe.declared)
    if expectation.unknown or expectation.either:
        probe.skip(f"1.0 decides nothing about the request: {expectation.describe()}")
    call = send_cut(probe, case, request)
    if call.rejected and call.ending.code in BUSY:
        probe.skip(f"the engine was busy: {call.ending.code.name}")
    if expectation.accepted:
        if call.rejected:
            probe.fail("acceptance, as by core 1.0", outcome(call), call)
        if not call.actions:
            completed(probe, call)
        return
    allowed = frozenset[grpc.StatusCode]().union(*expectation.broken.values())
    if not call.rejected or call.ending.code not in allowed:
        names = " or ".join(sorted(code.name for code in allowed))
        probe.fail(f"{names} before acceptance, as by core 1.0", outcome(call), call)


@check(
    "OE-PROF-001",
    table=_table(_later_minor),
    strategy=_strategy(_later_minor),
    advice="Give a new rule a new optional field or a new profile; a minor tightens nothing and "
    "changes no default.",
)
def minor_only_adds(probe: Probe, case: Case) -> None:
    """With a later minor of core, requests of 1.0 are answered as 1.0 says."""
    _as_in_1_0(probe, case)


@check(
    "OE-PROF-003",
    table=_table(_more_majors),
    strategy=_strategy(_more_majors),
    advice="Keep serving the older major by its own rules for as long as you advertise it; a "
    "client chooses one by the names and fields it uses.",
)
def majors_beside(probe: Probe, case: Case) -> None:
    """With two majors of one profile, the one of 1.0 works as if it were alone."""
    _as_in_1_0(probe, case)


@check(
    "OE-PROF-004",
    table=_table(_vendor_profiles),
    strategy=_strategy(_vendor_profiles),
    advice="Put what your profile adds into services, metadata and fields of your own; a request "
    "that uses none of them is answered as the standard says.",
)
def vendor_changes_nothing(probe: Probe, case: Case) -> None:
    """With a vendor's profile standard requests are answered as ever, and no standard service
    carries it.
    """
    scope = probe.declared.engine_scope
    for item in () if scope is None else scope.profiles:
        reused = [name for name in item.services if name.startswith(PACKAGE)]
        if "." in item.name and reused:
            probe.fail(f"services of its own for {item.name}", f"{reused}")
    _as_in_1_0(probe, case)
