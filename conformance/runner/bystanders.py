"""Breaches of a law seen in calls that another check made: replayed, then held against the law."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from conformance.model.case import from_json, to_json
from conformance.model.judgement import Judgement
from conformance.model.status import SkipReason, Status
from conformance.runner.execute import failure_status
from conformance.runner.opened import Link, Opened
from conformance.runner.plan import Row
from conformance.runner.replay import replay
from conformance.runner.result import CheckResult, Failure

# The profile of a runtime claims nothing here, so a breach says nothing either.
_UNCLAIMED = frozenset({SkipReason.CAPABILITY_ABSENT, SkipReason.UNCLAIMED})
# A law's own check that found a breach has the smaller request; the bystander adds nothing.
_SETTLED = frozenset({Status.FAIL, Status.FLAKY, Status.ERROR})


def settle_bystanders(
    session: Opened, results: Mapping[str, CheckResult]
) -> dict[str, CheckResult]:
    """The results with each law's verdict turned where another check's call broke the law."""
    settled = dict(results)
    rows = {row.requirement.id: row for row in session.plan.to_run}
    connection = session.connect()
    try:
        for seen in _first_of_each(results.values()):
            own, row, origin = (
                settled.get(seen.requirement),
                rows.get(seen.requirement),
                rows[seen.check],
            )
            if own is None or row is None or _settled(own.judgement):
                continue
            failure = _replayed(session, connection, origin, seen)
            status = failure_status(row.requirement, failure, tolerated=False)
            judgement = replace(own.judgement, status=status, reason=None, detail=failure.actual)
            settled[seen.requirement] = CheckResult(judgement, failure)
    finally:
        connection.close()
    return settled


def _settled(judgement: Judgement) -> bool:
    return judgement.status in _SETTLED or judgement.reason in _UNCLAIMED


def _first_of_each(results: Iterable[CheckResult]) -> list[Failure]:
    """One breach for each law, the same one whatever order the checks ran in."""
    first: dict[str, Failure] = {}
    seen = [failure for result in results for failure in result.bystanders]
    for failure in sorted(seen, key=lambda failure: (failure.requirement, failure.check)):
        first.setdefault(failure.requirement, failure)
    return list(first.values())


def _replayed(session: Opened, connection: Link, origin: Row, seen: Failure) -> Failure:
    if origin.check is None:
        return seen
    stored = from_json(to_json(seen.case))
    replays = session.options.budget.replays
    probe = session.probe(origin.requirement.id, connection)
    again = replay(origin.check, probe, stored, seen.requirement, replays)
    return replace(seen, case=stored, replays=again.judged, reproduced=len(again.violations))
