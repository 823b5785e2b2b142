"""How a law becomes a check: make calls that meet its precondition, then take over its rulings."""

from __future__ import annotations

from typing import cast

from hypothesis import strategies as st

from conformance.checks.check import Body, Check, Strategy, Table
from conformance.checks.probe import Probe
from conformance.laws import LAWS
from conformance.model.case import Case
from conformance.oracle import expect
from conformance.strategies import Feature, cases
from conformance.wire.declared import Declared
from oe_wire import v1


def follow(probe: Probe, case: Case) -> None:
    """Make the case's call; what the law says about it decides."""
    probe.generate(case)
    probe.settle()


def follow_optional(probe: Probe, case: Case) -> None:
    """As `follow`, for a row about something that an engine may leave out: where the law found
    nothing to judge on a call that went as it had to, nothing was claimed that could be wrong.
    """
    transcript = probe.generate(case)
    rulings = probe.log.rulings.get(probe.requirement, [])
    request = cast(v1.GenerateRequest, transcript.request)
    refusal_due = expect(request, case.metadata, probe.declared).refused
    expected = transcript.rejected if refusal_due else transcript.ending.ok
    if expected and all(ruling is None for ruling, _ in rulings):
        return
    probe.settle()


def law_check(
    row: str,
    *,
    advice: str,
    table: Table,
    features: tuple[Feature, ...] = (),
    strategy: Strategy | None = None,
    body: Body = follow,
) -> Check:
    """The check of the core row (`STREAM-001`) that a law judges.

    table: cases that meet the law's precondition on any normal engine. features: what a drawn
    request must have to meet it as well; strategy replaces drawing by features. ImportError for
    a row that has no law.
    """
    requirement = f"OE-CORE-{row}"
    if requirement not in LAWS:
        raise ImportError(f"no law for {requirement}")
    drawn = strategy if strategy is not None else _drawn(features)
    return Check(requirement, body, table, drawn, advice, f"core.laws.{row}")


def _drawn(features: tuple[Feature, ...]) -> Strategy:
    def strategy(declared: Declared) -> st.SearchStrategy[Case]:
        return cases(declared, *features)

    return strategy
