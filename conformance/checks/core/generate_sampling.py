"""Sampling parameters at and beyond their bounds (GEN-016 to GEN-020)."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from conformance.checks.check import Strategy, Table, check
from conformance.checks.core.judging import faults_of, judge
from conformance.checks.probe import Probe
from conformance.model.case import Case
from conformance.strategies import requests, simple_case
from conformance.wire.declared import Declared
from oe_wire import v1

INT32 = st.integers(-(2**31), 2**31 - 1)
# All doubles, NaN and the infinities among them; the oracle knows which are legal where.
DOUBLES = st.floats(allow_subnormal=False)


def _bounds(row: str, field: str, *legal: float) -> Table:
    """Each illegal value of the row, then the legal ones that lie at its bounds."""

    def table(declared: Declared) -> Iterable[Case]:
        yield from faults_of(row)(declared)
        for value in legal:
            yield simple_case(declared, **{field: value})

    return table


def _values(*fields: str, values: st.SearchStrategy[float] = DOUBLES) -> Strategy:
    """Any value in one of `fields`: in the simplest request, so that a refusal of a legal value is
    about that field, or in any valid request, where other options must not hide an illegal one.
    """

    def strategy(declared: Declared) -> st.SearchStrategy[Case]:
        names = st.sampled_from(fields)
        alone = st.builds(lambda name, value: simple_case(declared, **{name: value}), names, values)
        among = st.builds(_changed, requests(declared), names, values)
        return alone | among

    return strategy


def _changed(request: v1.GenerateRequest, field: str, value: float) -> Case:
    copy = v1.GenerateRequest()
    copy.CopyFrom(request)
    setattr(copy.sampling, field, value)
    return Case(copy, params={"among": True})


def _judge_field(probe: Probe, case: Case) -> None:
    """Judge, but blame a refusal of a valid request on the field only when it stands alone."""
    judge(probe, case, served_too="among" not in case.params)


@check(
    "OE-CORE-GEN-016",
    advice="Test temperature with isfinite as well as >= 0: NaN passes every comparison that is "
    "written as `value < 0`. Zero selects greedy decoding and is valid.",
    table=_bounds("GEN-016", "temperature", 0.0, 1.0),
    strategy=_values("temperature"),
)
def temperature(probe: Probe, case: Case) -> None:
    """Temperature is finite and not negative; zero is greedy."""
    _judge_field(probe, case)


@check(
    "OE-CORE-GEN-017",
    advice="Accept top_p in (0, 1] only, and test it with isfinite; present zero is invalid, "
    "absence means no limit.",
    table=_bounds("GEN-017", "top_p", 1.0, 0.5),
    strategy=_values("top_p"),
)
def top_p(probe: Probe, case: Case) -> None:
    """The mass of candidates is above zero and at most one."""
    _judge_field(probe, case)


@check(
    "OE-CORE-GEN-018",
    advice="Treat top_k -1 and 0 as no limit and refuse anything below -1.",
    table=_bounds("GEN-018", "top_k", -1, 0, 1),
    strategy=_values("top_k", values=INT32),
)
def top_k(probe: Probe, case: Case) -> None:
    """The number of candidates is -1 or 0 for all, or positive."""
    _judge_field(probe, case)


@check(
    "OE-CORE-GEN-019",
    advice="Accept min_p in [0, 1] only, and test it with isfinite.",
    table=_bounds("GEN-019", "min_p", 0.0, 1.0),
    strategy=_values("min_p"),
)
def min_p(probe: Probe, case: Case) -> None:
    """The least relative probability lies between zero and one."""
    _judge_field(probe, case)


@check(
    "OE-CORE-GEN-020",
    advice="Refuse a repetition_penalty that is not finite or not above zero, and frequency and "
    "presence penalties that are not finite; zero is valid for the latter two only.",
    table=_bounds("GEN-020", "repetition_penalty", 1.0),
    strategy=_values("repetition_penalty", "frequency_penalty", "presence_penalty"),
)
def penalties(probe: Probe, case: Case) -> None:
    """Penalties are finite, the repetition penalty positive."""
    _judge_field(probe, case)
