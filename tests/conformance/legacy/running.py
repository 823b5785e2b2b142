"""Runs the real suite against the toy engine."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.model.status import Status
from conformance.runner.budget import Budget
from conformance.runner.report import Report
from conformance.runner.run import run
from conformance.runner.selection import Selection
from conformance.runner.session import Options
from conformance.wire.target import Target, parse_address
from tests.legacy_engine.behaviour import Behaviour
from tests.legacy_engine.server import LegacyEngine

# What a report says of a row besides these is that it holds, or was not to be judged.
SHOWN = (Status.FAIL, Status.FLAKY, Status.ERROR, Status.WARN, Status.BLOCKED)
# Tables alone: a deviation of the table is in reach of the plainest request.
CHEAP = Budget("cheap", examples=0, requests=60, tokens=6_000, shrink_requests=0, replays=1)
CLAIM = "v0.1.0-compatible, revision 1, dialect"


def judged(
    behaviour: Behaviour, budget: Budget = CHEAP, ids: tuple[str, ...] = (), dialect: str = ""
) -> Report:
    """The suite's report on an engine. ids: only these rows; dialect: instead of its own."""
    with LegacyEngine(behaviour) as engine:
        options = Options(
            Target(parse_address(engine.address)),
            dialect=dialect,
            budget=budget,
            seed=1,
            jobs=4,
            selection=Selection(ids=ids),
        )
        return run(options)


def lines(report: Report) -> Mapping[str, str]:
    """What the report says that is not simply good or not to be judged."""
    found = {j.requirement: j.status.value for j in report.judgements if j.status in SHOWN}
    faults = {j.requirement: j.detail for j in report.judgements if j.status is Status.ERROR}
    return found | faults  # an error is the suite's own: its detail helps
